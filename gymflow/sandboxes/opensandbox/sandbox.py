"""An OpenSandbox sandbox. Its daemon reports output line by line and loses how lines ended, so commands run through the
script in `shim`."""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta

from opensandbox import Sandbox as Remote
from opensandbox import SandboxManager
from opensandbox.exceptions import SandboxApiException, SandboxConnectionException, SandboxException
from opensandbox.models.execd import Execution, RunCommandOpts
from opensandbox.models.filesystem import WriteEntry

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.errors import RolloutFailure
from gymflow.sandboxes.errors import SandboxError, SandboxLost
from gymflow.sandboxes.opensandbox import failures
from gymflow.sandboxes.shim import TextShimSandbox

ROOT = 0
AGENT = 1000
RUNNING = "Running"
CONNECTION_S = 10.0
PATIENCE = 20
OWN = 'for d do mkdir -p "$d" && chown "$U:$G" "$d" || exit 1; done'


class OpenSandboxSandbox(TextShimSandbox):
    """One sandbox. `manager` is the provider's, `remote` this sandbox's own connection."""

    def __init__(self, sandbox_id: str, spec: SandboxSpec, remote: Remote, manager: SandboxManager) -> None:
        self._user = user_of(spec)
        home = "/root" if self._user[0] == ROOT else "/home/agent"
        environment = {"HOME": home, "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **spec.env}
        super().__init__(sandbox_id, spec, "full", environment)
        self._remote = remote
        self._manager = manager

    async def prepare(self) -> None:
        """Give the sandbox's user a workdir and a home before it makes itself at home there."""
        uid, gid = self._user
        line = f"U={uid} G={gid}; {OWN}"
        argv = ["/bin/sh", "-c", line, "sh", self.spec.workdir, self.environment["HOME"]]
        code, said = await self._as(ROOT, ROOT, argv, deadline_s=60)
        if code:
            raise SandboxError(f"the workdir cannot be made ({said.strip()[:300] or f'exit code {code}'})")
        await super().prepare()

    async def _upload(self, path: str, data: bytes) -> None:
        async with self._failures("write a file"):
            # The SDK writes a mode as the digits that one would read.
            await self._remote.files.write_files([WriteEntry(path=path, data=data, mode=644)])

    async def _lines(self, line: str, *, env: Mapping[str, str], deadline_s: float) -> list[str]:
        execution = await self._run_line(line, *self._user, env=env, deadline_s=deadline_s)
        # Nothing on stdout: what went wrong is said instead of the report.
        return [message.text.rstrip("\n") for message in execution.logs.stdout] or [_said(execution)]

    async def _downloads(self, paths: Sequence[str]) -> list[bytes]:
        async with self._failures("read a file"):
            return [await self._remote.files.read_bytes(path) for path in paths]

    async def _run_line(
        self, line: str, uid: int, gid: int, *, deadline_s: float, env: Mapping[str, str] | None = None
    ) -> Execution:
        options = RunCommandOpts(timeout=timedelta(seconds=deadline_s), uid=uid, gid=gid, envs=dict(env or {}) or None)
        # The stream of a command has no time limit of its own in the SDK.
        async with self._failures("run a command"), asyncio.timeout(deadline_s + CONNECTION_S):
            execution = await self._remote.commands.run(line, opts=options)
            if execution.complete is None and execution.error is None:
                # So a stream ends whose sandbox is removed; the SDK takes it for the command's end.
                raise SandboxConnectionException("the connection ended before the command did")
        return execution

    async def _plain(self, argv: Sequence[str], *, deadline_s: float) -> tuple[int, str]:
        return await self._as(*self._user, argv, deadline_s=deadline_s)

    async def _as(self, uid: int, gid: int, argv: Sequence[str], *, deadline_s: float) -> tuple[int, str]:
        execution = await self._run_line(shlex.join(argv), uid, gid, deadline_s=deadline_s)
        code = execution.exit_code
        return (1 if code is None else code), _said(execution)

    @contextlib.asynccontextmanager
    async def _failures(self, doing: str) -> AsyncIterator[None]:
        try:
            yield
        except (SandboxException, TimeoutError) as error:
            raise await self._told(error, doing) from error

    async def _told(self, error: SandboxException | TimeoutError, doing: str) -> RolloutFailure:
        """SandboxLost where the sandbox is gone or not running any more, which a call to it does not always tell."""
        try:
            state = (await self._manager.get_sandbox_info(self._remote.id)).status.state
        except SandboxException as unknown:
            if failures.is_missing(unknown):
                return SandboxLost(f"sandbox {self.id} is gone: OpenSandbox does not know it any more", cause=error)
            state = RUNNING  # nothing can be said of it; then what went wrong is the call
        if state != RUNNING:
            return SandboxLost(f"sandbox {self.id} is gone: it is {state}", cause=error)
        if isinstance(error, TimeoutError):
            return SandboxError(f"OpenSandbox did not answer in time, could not {doing}", cause=error)
        return failures.of_command(error, doing)

    async def _remove(self) -> None:
        try:
            await removed(self._manager, self._remote.id)
        finally:
            await self._remote.close()


async def removed(manager: SandboxManager, remote_id: str) -> None:
    """Delete a sandbox; one that is not there is deleted already. Raises SandboxError."""
    for _ in range(PATIENCE):
        try:
            await manager.kill_sandbox(remote_id)
            return
        except SandboxException as error:
            if failures.is_missing(error):
                return
            if not isinstance(error, SandboxApiException) or error.status_code != 409:
                raise SandboxError(f"could not remove sandbox {remote_id}: {error}", cause=error) from error
        await asyncio.sleep(0.5)  # a change of its state is in progress
    raise SandboxError(f"could not remove sandbox {remote_id}: a change of its state does not end")


def user_of(spec: SandboxSpec) -> tuple[int, int]:
    """User and group, as numbers. Raises ValueError."""
    match spec.user:
        case None | "agent":
            return AGENT, AGENT
        case "root":
            return ROOT, ROOT
        case numbers:
            uid, _, gid = numbers.partition(":")
            return int(uid), int(gid or uid)


def _said(execution: Execution) -> str:
    """What a command wrote, and how it failed, for a message."""
    lines = [message.text for message in (*execution.logs.stdout, *execution.logs.stderr)]
    if execution.error is not None:
        lines.append(f"{execution.error.name}: {execution.error.value}")
    return "\n".join(lines)
