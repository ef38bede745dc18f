"""exec for providers whose own one loses bytes, mixes the streams or leaves processes behind: a shell script around the command.

It runs inside, so that a time limit holds also when the connection to the sandbox is cut. Output goes to files, never through
the provider's text; the mark in the environment (see `posix.KILL`) ends the whole tree.
"""

import asyncio
import base64
import itertools
import math
import secrets
import shlex
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gymflow.contracts.sandbox import ExecOutcome, SandboxSpec
from gymflow.sandboxes.errors import SandboxError, SandboxLost
from gymflow.sandboxes.interface import KEEP_BYTES, Command, ExecResult, Isolation, argv_of
from gymflow.sandboxes.posix import KILL, MARK, OOM_COUNT, ShellSandbox

FOLDER = "/tmp/.gymflow"
KILLED = 137
INLINE_BYTES = 1 << 16
LINE_BYTES = 100_000
"""A longer command goes there as a file: the kernel takes no argument above 128 KiB."""
GRACE_S = 30.0
"""How much longer than the command's own time limit the connection may take, before the sandbox counts as failing."""

SHIM = f"""
d=$1 m=$2 t=$3 limit=$4 keep=$5 how=$6 k=$7 cwd=$8; shift 8
exec 3>&2 2>/dev/null
if [ -f "$d.in" ]; then exec <"$d.in"; elif [ "$how" = text ]; then exec </dev/null; fi
large() {{ [ -n "$(find "$d.out" "$d.err" -size +"$limit"c)" ]; }}
ooms() {{ {OOM_COUNT}; }}
all() {{ read -r p <"$d.pid" && kill -9 "$p"; /bin/sh -c "$k" sh "$m"; }}
end() {{ echo "$1" >"$d.why"; all; }}
: >"$d.out" && : >"$d.err" || exit 125
before=$(ooms)
sleep 0.01 || t=$((${{t%.*}} + 1))
(s=; trap '[ -z "$s" ] || kill $s; exit' TERM; sleep "$t" & s=$!; wait $s; end timeout) </dev/null >/dev/null 3>&- & w=$!
(while sleep 0.1 || sleep 1; do if large; then end output_limit; exit; fi; done) </dev/null >/dev/null 3>&- & v=$!
(exec 3>&-; cd "$cwd" 2>"$d.err" || exit 126; export "$m"; exec /bin/sh -c 'echo $$ >"$0.pid"; exec "$@"' "$d" "$@") >"$d.out" 2>"$d.err"
r=$?
kill $w $v; wait $w $v
[ -s "$d.why" ] || if large; then echo output_limit >"$d.why"; fi
why=exited
if [ -s "$d.why" ]; then
  read -r why <"$d.why"; /bin/sh -c "$k" sh "$m"
elif [ $r != 0 ] && [ "$before" != "$(ooms)" ]; then
  why=oom
elif [ $r = {KILLED} ]; then
  why=killed
fi
o=$(wc -c <"$d.out") e=$(wc -c <"$d.err")
here=inline
if [ "$how" = raw ]; then
  here=raw; head -c "$keep" "$d.out"; head -c "$keep" "$d.err" >&3; echo >&3; exec >&3
elif [ $((o + e)) -gt {INLINE_BYTES} ] || ! command -v base64 >/dev/null; then
  here=files
  for f in "$d.out" "$d.err"; do head -c "$keep" "$f" >"$f.kept" && mv -f "$f.kept" "$f"; done
fi
echo "{MARK} $why $r $((o)) $((e)) $here"
if [ $here = inline ]; then
  for f in "$d.out" "$d.err"; do head -c "$keep" "$f" | base64 | tr -d '\\n'; echo; done
fi
[ $here = files ] || rm -f "$d.cmd" "$d.in" "$d.out" "$d.err" "$d.why" "$d.pid"
"""
ENDINGS = ("cmd", "in", "out", "err", "why", "pid")
"""Of the files that belong to one call."""

PREPARE = """
umask 077; mkdir -p "$1" || exit 1
umask 022; mkdir -p "$2" 2>/dev/null || sudo -n install -d -o "$(id -u)" -g "$(id -g)" "$2" || exit 1
[ -w "$2" ]
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What the script says of a command. `written`: bytes on stdout and on stderr. `where`: how they come back."""

    outcome: ExecOutcome
    exit_code: int
    written: tuple[int, int]
    where: Literal["raw", "inline", "files"]


@dataclass(frozen=True, slots=True)
class Words:
    """One call of the script: its arguments, and the path that its files begin with."""

    path: str
    mark: str
    argv: list[str]


def reported(line: bytes | str) -> Report:
    """The script's line. Raises SandboxError where it did not get so far."""
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    words = text.split()
    if len(words) != 6 or words[0] != MARK or words[1] not in get_args(ExecOutcome):
        raise SandboxError(f"a command was not watched to its end: {text.strip()[:400] or 'nothing came back'}")
    return Report(words[1], int(words[2]), (int(words[3]), int(words[4])), words[5])  # type: ignore[arg-type]


def inlined(lines: Sequence[str]) -> tuple[bytes, bytes]:
    """Both streams out of the two lines after the report."""
    stdout, stderr = (base64.b64decode(line) for line in (*lines, "", "")[:2])
    return stdout, stderr


class ShimSandbox(ShellSandbox):
    """Commands through the script; a provider says how it is called (`_shimmed`) and how a plain command runs (`_plain`)."""

    how: Literal["raw", "text"]

    def __init__(
        self, sandbox_id: str, spec: SandboxSpec, isolation: Isolation, environment: Mapping[str, str]
    ) -> None:
        super().__init__(sandbox_id, spec, isolation)
        self.environment = dict(environment)
        self._names = itertools.count(1)
        self._stopping: asyncio.Task[None] | None = None
        wall_s = spec.limits.wall_s
        # To the second here, where providers count minutes or nothing at all.
        self._end_of_life = asyncio.get_running_loop().call_later(wall_s, self._stopped) if wall_s else None

    @abstractmethod
    async def _shimmed(
        self, words: Words, *, env: Mapping[str, str], stdin: bytes | None, deadline_s: float
    ) -> tuple[Report, bytes, bytes]:
        """Run the script; its report, and both streams as far as they were kept."""

    @abstractmethod
    async def _plain(self, argv: Sequence[str], *, deadline_s: float) -> tuple[int, str]:
        """Run a command of ours by the provider's own means; exit code and output."""

    @abstractmethod
    async def _remove(self) -> None:
        """Remove the sandbox; one that is not there is removed already."""

    async def exec(
        self,
        command: Command,
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        timeout_s: float = 60.0,
        keep_bytes: int = KEEP_BYTES,
    ) -> ExecResult:
        if user is not None and user != self.spec.user:
            raise SandboxError(f"`{self.spec.provider}` runs every command as the sandbox's user", maybe_ran=False)
        return await self._run(
            argv_of(command), stdin=stdin, env=env, cwd=self.resolve(cwd or ""), timeout_s=timeout_s, keep_bytes=keep_bytes,
            limit_bytes=self.spec.limits.output_mib << 20,
        )  # fmt: skip

    async def internal(
        self, argv: Sequence[str], *, stdin: bytes | None = None, keep_bytes: int = 1 << 16, timeout_s: float = 300.0
    ) -> ExecResult:
        return await self._run(
            argv, stdin=stdin, env=None, cwd="/", timeout_s=timeout_s, keep_bytes=keep_bytes,
            limit_bytes=4 * keep_bytes + (1 << 20),
        )  # fmt: skip

    async def prepare(self) -> None:
        """Make the workdir and the script's folder. Raises SandboxError that says what to do where the user may not."""
        code, said = await self._plain(["/bin/sh", "-c", PREPARE, "sh", FOLDER, self.spec.workdir], deadline_s=60)
        if code:
            raise SandboxError(
                f"the sandbox's user cannot write in {self.spec.workdir} ({said.strip()[:200] or f'exit code {code}'}); "
                "set `workdir` to a folder that it may write in, or choose an image that has one"
            )
        await self.furnish()

    async def _run(
        self, argv: Sequence[str], *, stdin: bytes | None, env: Mapping[str, str] | None, cwd: str, timeout_s: float,
        keep_bytes: int, limit_bytes: int,
    ) -> ExecResult:  # fmt: skip
        if self._stopping is not None:
            raise SandboxLost(f"sandbox {self.id} is gone: it was stopped")
        number = f"{next(self._names)}.{secrets.token_hex(4)}"
        words = Words(path := f"{FOLDER}/{number}", mark := f"{MARK}={self.id}.{number}", [
            "/bin/sh", "-c", SHIM, "sh", path, mark, f"{timeout_s:.3f}", str(limit_bytes), str(keep_bytes), self.how, KILL, cwd,
            *argv,
        ])  # fmt: skip
        started = time.monotonic()
        try:
            report, stdout, stderr = await self._shimmed(
                words, env={**self.environment, **(env or {})}, stdin=stdin, deadline_s=math.ceil(timeout_s + GRACE_S)
            )
        except asyncio.CancelledError:
            await asyncio.shield(self._end(mark))
            raise
        forced = report.outcome in ("timeout", "output_limit")
        return ExecResult(
            outcome=report.outcome,
            exit_code=KILLED if forced else report.exit_code,
            stdout=stdout,
            stderr=stderr,
            duration_s=time.monotonic() - started,
            truncated=max(report.written) > keep_bytes,
        )

    async def _end(self, mark: str) -> None:
        """SIGKILL to all that carries the mark."""
        try:
            await self._plain(["/bin/sh", "-c", KILL, "sh", mark], deadline_s=GRACE_S)
        except (SandboxError, SandboxLost):
            pass  # what is gone runs nothing; else its own time limit ends the command

    def _stopped(self) -> "asyncio.Task[None]":
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._remove())
        return self._stopping

    async def stop(self) -> None:
        if self._end_of_life is not None:
            self._end_of_life.cancel()
        await asyncio.shield(self._stopped())


class TextShimSandbox(ShimSandbox):
    """Where a provider's exec takes a shell line and gives back text, and files go by calls of their own."""

    how = "text"

    @abstractmethod
    async def _upload(self, path: str, data: bytes) -> None:
        """Write a file."""

    @abstractmethod
    async def _lines(self, line: str, *, env: Mapping[str, str], deadline_s: float) -> list[str]:
        """Run a shell line; what it wrote to stdout, line by line."""

    @abstractmethod
    async def _downloads(self, paths: Sequence[str]) -> list[bytes]:
        """Read files."""

    async def _shimmed(
        self, words: Words, *, env: Mapping[str, str], stdin: bytes | None, deadline_s: float
    ) -> tuple[Report, bytes, bytes]:
        line = shlex.join(words.argv)
        if stdin is not None:
            await self._upload(f"{words.path}.in", stdin)
        if len(line.encode()) > LINE_BYTES:
            await self._upload(f"{words.path}.cmd", f"exec {line}\n".encode())
            line = f"/bin/sh {words.path}.cmd"
        first, *rest = await self._lines(line, env=env, deadline_s=deadline_s) or [""]
        report = reported(first)
        if report.where == "inline":
            return report, *inlined(rest)
        stdout, stderr = await self._downloads([f"{words.path}.out", f"{words.path}.err"])
        await self._plain(["rm", "-f", *(f"{words.path}.{end}" for end in ENDINGS)], deadline_s=GRACE_S)
        return report, stdout, stderr
