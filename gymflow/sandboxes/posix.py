"""What providers do that can only run commands in a sandbox: files and process trees with nothing but a POSIX shell."""

from abc import abstractmethod
from collections.abc import Sequence

from gymflow.sandboxes.errors import SandboxError, TooLarge, UnsafePath, said_error
from gymflow.sandboxes.interface import GET_BYTES, ExecResult, Sandbox

MARK = "GYMFLOW_EXEC"

ENTER = 'cd "$1" || exit 126; shift; exec "$@"'
"""Runs a command in a folder; a folder that is not there is 126, as a file that cannot be run."""

PUT = """
p=$1; d=${p%/*}; t="$d/.gymflow-$$.part"
if [ -d "$p" ] && [ ! -L "$p" ]; then exit 41; fi
mkdir -p -- "${d:-/}" && cat >"$t" && chmod "$2" "$t" || { rm -f -- "$t"; exit 42; }
if [ -L "$p" ]; then rm -f -- "$p"; fi
mv -f -- "$t" "$p" || { rm -f -- "$t"; exit 42; }
"""

GET = """
if [ ! -e "$1" ]; then exit 44; fi
if [ -d "$1" ]; then exit 41; fi
if [ ! -f "$1" ]; then exit 43; fi
n=$(wc -c <"$1") || exit 42
if [ "$n" -gt "$2" ]; then exit 45; fi
exec cat -- "$1"
"""

KILL = """
n=0
while [ $n -lt 50 ]; do
  k=
  for p in /proc/[0-9]*; do
    q=${p#/proc/}
    if [ "$q" != $$ ] && { tr '\\0' '\\n' <"$p/environ" | grep -qx "$1"; } 2>/dev/null; then
      kill -9 "$q" 2>/dev/null && k=1
    fi
  done
  [ -z "$k" ] && exit 0
  n=$((n + 1))
done
"""
"""Ends every process whose environment holds the mark: children inherit it also through `setsid` and double forks. One that
clears its environment lives until the sandbox is stopped."""


OOM_COUNT = "grep -h oom_kill /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null | grep -v disable"
"""Prints how many processes of the sandbox's control group died for lack of memory."""


class ShellSandbox(Sandbox):
    """Files by commands. The files' owner is the sandbox's user, since its commands write them."""

    @abstractmethod
    async def internal(
        self, argv: Sequence[str], *, stdin: bytes | None = None, keep_bytes: int = 1 << 16, timeout_s: float = 300.0
    ) -> ExecResult:
        """A command of ours, as the sandbox's user, with an output limit of its own."""

    async def put(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        result = await self.internal(["/bin/sh", "-c", PUT, "sh", self.resolve(path), f"{mode:o}"], stdin=data)
        match result.exit_code:
            case 0:
                return
            case 41:
                raise IsADirectoryError(path)
            case _:
                if error := said_error(result.text(), path):
                    raise error
                raise SandboxError(f"could not write {path}: {result.text().strip()[:400] or result.outcome}")

    async def get(self, path: str, *, max_bytes: int = GET_BYTES) -> bytes:
        argv = ["/bin/sh", "-c", GET, "sh", self.resolve(path), str(max_bytes)]
        result = await self.internal(argv, keep_bytes=max_bytes)
        match result.exit_code:
            case 0 if not result.truncated:
                return result.stdout
            case 0 | 45:
                raise TooLarge(f"{path} holds more than {max_bytes} bytes")
            case 41:
                raise IsADirectoryError(path)
            case 43:
                raise UnsafePath(f"{path} is not a regular file")
            case 44:
                raise FileNotFoundError(path)
            case _:
                if error := said_error(result.text(), path):
                    raise error
                raise SandboxError(f"could not read {path}: {result.text().strip()[:400] or result.outcome}")
