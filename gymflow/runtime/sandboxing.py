"""The sandbox of one episode: started from the pool, its commands recorded, its workspace kept before it is stopped."""

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from gymflow.contracts.environment import Collected
from gymflow.contracts.outcome import StopReason
from gymflow.contracts.sandbox import SandboxSpec
from gymflow.contracts.trajectory import Gap, SandboxUse
from gymflow.errors import InputError, RolloutFailure, StopEpisode
from gymflow.harnesses import Lodging
from gymflow.runtime.plugins import own_doing
from gymflow.sandboxes import archive, open_sandbox, patch, provider
from gymflow.sandboxes.errors import SandboxError, SandboxLost, SandboxUnsupported, TooLarge
from gymflow.sandboxes.interface import GET_BYTES, GET_FILES, KEEP_BYTES, Command, ExecResult, Sandbox
from gymflow.sandboxes.pool import pool
from gymflow.verifiers import Verifier

COLLECT_BYTES = 256 << 20
COMMAND_CHARACTERS = 4000
"""Of a command, what the record keeps."""

NOT_WORK = (".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".venv")
"""Names that a patch leaves out."""

_PROCESSES = "for place in /proc/[0-9]*; do echo ${place#/proc/}; done"
_END_OTHERS = """
own=" OWN $$ "
for round in 1 2 3 4 5; do
  for place in /proc/[0-9]*; do
    case "$own" in *" ${place#/proc/} "*) ;; *) kill -9 "${place#/proc/}" 2>/dev/null ;; esac
  done
done
true
"""
"""Several rounds, since what is killed may just have started another one."""


class EpisodeSandbox(Sandbox):
    """A started sandbox whose commands are recorded in `used`.

    A sandbox past its declared wall time ends the episode with a stop reason. One that is gone for another reason, out of memory as a
    whole included, fails the rollout: nobody can see any more what the agent had done.
    """

    def __init__(self, inner: Sandbox, collects: Sequence[Collected], cleared: bool = False) -> None:
        super().__init__(inner.id, inner.spec, inner.isolation)
        self.used: list[SandboxUse] = []
        self._inner = inner
        self._collects = collects
        self._cleared = cleared
        self._own_processes = ""
        self._base: dict[str, bytes] = {}
        self.since = inner.since

    async def prepare(self) -> None:
        """Look at the workspace as it is at the start, where a patch is to be made, and at what runs before the agent does."""
        if self._cleared:
            self._own_processes = (await self._inner.exec(_PROCESSES)).stdout.decode()
        if "patch" in self._collects:
            whole = await self._inner.get_archive(self.spec.workdir, max_bytes=COLLECT_BYTES, exclude=NOT_WORK)
            self._base = archive.read(whole)

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
        text = command if isinstance(command, str) else shlex.join(command)
        use = SandboxUse(command=text[:COMMAND_CHARACTERS], outcome="cancelled", started_at=time.time(), duration_s=0.0)
        self.used.append(use)
        started = time.monotonic()
        try:
            with self._agents_doing():
                result = await self._inner.exec(
                    command, stdin=stdin, env=env, cwd=cwd, user=user, timeout_s=timeout_s, keep_bytes=keep_bytes
                )
        except StopEpisode:
            use.outcome = "killed"
            raise
        except RolloutFailure:
            use.outcome = "failed"
            raise
        finally:
            use.duration_s = time.monotonic() - started
        use.outcome, use.exit_code = result.outcome, result.exit_code
        use.cpu_s, use.peak_memory_bytes = result.usage.cpu_s, result.usage.peak_memory_bytes
        return result

    async def put(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        with self._agents_doing():
            await self._inner.put(path, data, mode=mode)

    async def get(self, path: str, *, max_bytes: int = GET_BYTES) -> bytes:
        with self._agents_doing():
            return await self._inner.get(path, max_bytes=max_bytes)

    async def put_archive(self, path: str, archive: bytes) -> None:
        with self._agents_doing():
            await self._inner.put_archive(path, archive)

    async def get_archive(
        self, path: str, *, max_bytes: int = GET_BYTES, max_files: int = GET_FILES, exclude: Sequence[str] = ()
    ) -> bytes:
        with self._agents_doing():
            return await self._inner.get_archive(path, max_bytes=max_bytes, max_files=max_files, exclude=exclude)

    async def observed(self, verifier: Verifier[Any], fields: BaseModel) -> tuple[dict[str, bytes], list[Gap]]:
        """What the verifier takes from the sandbox itself, with everything ended that the agent left running. Its commands are not
        the agent's and are not recorded. A gap where the sandbox is gone or the verifier fails: then it has nothing to judge."""
        try:
            with self._agents_doing():
                await self._inner.exec(_END_OTHERS.replace("OWN", " ".join(self._own_processes.split())), timeout_s=30)
                return await verifier.observe(fields, self._inner), []
        except RolloutFailure:
            raise
        except BaseException as error:
            if not own_doing(error):
                raise
            return {}, [
                Gap(code="no_workspace", detail=f"the verifier could not look: {type(error).__name__}: {error}")
            ]

    async def stop(self) -> None:
        """The sandbox is the engine's to stop, when its evidence is kept."""

    async def collect(self) -> tuple[dict[str, bytes], list[Gap]]:
        """The artifacts of the workspace by name; a gap where the agent left nothing that can be kept."""
        try:
            whole = await self._archive(() if "workspace" in self._collects else NOT_WORK)
        except (FileNotFoundError, NotADirectoryError):
            return {}, [Gap(code="no_workspace", detail=f"{self.spec.workdir} is no longer a folder")]
        except (TooLarge, OSError) as error:
            return {}, [Gap(code="no_workspace", detail=str(error))]
        except StopEpisode as stop:
            return {}, [Gap(code="no_workspace", detail=f"the sandbox was gone: {stop}")]
        artifacts = {}
        if "workspace" in self._collects:
            artifacts["workspace"] = whole
        if "patch" in self._collects:
            artifacts["patch"] = await asyncio.to_thread(self._patch, whole)
        return artifacts, []

    def _patch(self, whole: bytes) -> bytes:
        return patch.diff(self._base, archive.read(archive.normalised(whole, exclude=NOT_WORK)))

    async def _archive(self, exclude: Sequence[str]) -> bytes:
        return await self.get_archive(self.spec.workdir, max_bytes=COLLECT_BYTES, exclude=exclude)

    @contextlib.contextmanager
    def _agents_doing(self) -> Generator[None]:
        try:
            yield
        except SandboxLost as error:
            wall_s = self.spec.limits.wall_s
            if wall_s is not None and time.monotonic() - self.since >= wall_s:
                raise StopEpisode(StopReason.WALL_TIME, f"the sandbox ended after {wall_s:g} s") from error
            why = "; it was out of memory" if error.oom else ""
            logs = f"; its last output: {error.logs.strip()[-500:]}" if error.logs.strip() else ""
            raise SandboxLost(f"{error.message}{why}{logs}", oom=error.oom, logs=error.logs, cause=error) from error


@contextlib.asynccontextmanager
async def episode_sandbox(
    spec: SandboxSpec,
    collects: Sequence[Collected],
    *,
    labels: Mapping[str, str],
    lodging: Lodging | None = None,
    cleared: bool = False,
) -> AsyncIterator[EpisodeSandbox]:
    """A sandbox with the task's workspace in it, removed at the end of the block. `cleared`: its verifier will look at it, with the
    agent's processes gone.

    That it could not be removed does not undo the episode: it is labelled, and the next start cleans up. Raises RolloutFailure.
    """
    ended = False
    try:
        async with _opened(spec, labels, lodging) as inner:
            sandbox = EpisodeSandbox(inner, collects, cleared)
            await sandbox.prepare()
            yield sandbox
            ended = True
    except SandboxError:
        if not ended:
            raise


def _opened(
    spec: SandboxSpec, labels: Mapping[str, str], lodging: Lodging | None
) -> contextlib.AbstractAsyncContextManager[Sandbox]:
    if lodging is None:
        return open_sandbox(spec, labels=labels)
    if spec.network == "open":
        raise SandboxUnsupported(
            "a harness that works inside the sandbox reaches the gateway only where there is no other network; "
            "--set sandbox.network=gateway"
        )
    closed = spec.model_copy(update={"network": "gateway"})
    return open_sandbox(closed, labels=labels, mounts=lodging.mounts, gateway=lodging.gateway)


async def identified(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """A sandbox's part with `holds`, the identity of what its image has in it. Raises InputError where the provider is not to be had."""
    if part is None:
        return None
    spec = SandboxSpec.model_validate(part)
    try:
        return {**part, "holds": await provider(spec.provider).image_identity(spec.image)}
    except RolloutFailure as error:
        raise InputError(f"sandbox provider `{spec.provider}` cannot be used here: {error.message}") from error


async def require_sandboxes(specs: Iterable[SandboxSpec]) -> None:
    """InputError where a provider cannot run here what a run asks of it: each is started once, without the tasks' files."""
    for spec in dict.fromkeys(spec.model_copy(update={"files": {}}).model_dump_json() for spec in specs):
        bare = SandboxSpec.model_validate_json(spec)
        try:
            async with pool(bare.provider).sandbox(bare):
                pass
        except RolloutFailure as error:
            raise InputError(
                f"sandbox provider `{bare.provider}` cannot be used here: {error.message}; see `gym sandbox check {bare.provider}`, "
                "or choose another with --set sandbox.provider=NAME"
            ) from error
