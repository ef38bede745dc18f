"""A Daytona sandbox. Its own exec gives one text of both streams, so commands run through the script in `shim`."""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence

from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    DaytonaConflictError,
    DaytonaError,
    DaytonaGoneError,
    DaytonaNotFoundError,
)
from daytona import FileDownloadRequest as Download

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.errors import RolloutFailure
from gymflow.sandboxes.daytona import failures
from gymflow.sandboxes.errors import SandboxError, SandboxLost
from gymflow.sandboxes.shim import TextShimSandbox

CALL_S = 60.0
TRANSFER_S = 600
RUNNING = "started"
PATIENCE = 20


class DaytonaSandbox(TextShimSandbox):
    """One sandbox, by name."""

    def __init__(self, name: str, spec: SandboxSpec, remote: AsyncSandbox, client: AsyncDaytona) -> None:
        super().__init__(name, spec, "full", {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **spec.env})
        self._remote = remote
        self._client = client

    async def _upload(self, path: str, data: bytes) -> None:
        async with self._failures("write a file"):
            await self._remote.fs.upload_file(data, path, timeout=TRANSFER_S)

    async def _lines(self, line: str, *, env: Mapping[str, str], deadline_s: float) -> list[str]:
        async with self._failures("run a command"):
            done = await self._remote.process.exec(line, env=dict(env), timeout=int(deadline_s))
        return (done.result or "").splitlines()

    async def _downloads(self, paths: Sequence[str]) -> list[bytes]:
        async with self._failures("read a file"):
            found = await self._remote.fs.download_files([Download(source=path) for path in paths], timeout=TRANSFER_S)
        contents = [one.result for one in found if isinstance(one.result, bytes)]
        if len(contents) != len(paths):
            raise SandboxError(f"Daytona did not give a command's output: {[one.error for one in found]}")
        return contents

    async def _plain(self, argv: Sequence[str], *, deadline_s: float) -> tuple[int, str]:
        async with self._failures("run a command"):
            done = await self._remote.process.exec(shlex.join(argv), timeout=int(deadline_s))
        return int(done.exit_code or 0), done.result or ""

    @contextlib.asynccontextmanager
    async def _failures(self, doing: str) -> AsyncIterator[None]:
        try:
            yield
        except DaytonaError as error:
            raise await self._told(error, doing) from error

    async def _told(self, error: DaytonaError, doing: str) -> RolloutFailure:
        """A call to the sandbox failed: because it is gone, or because Daytona did."""
        try:
            state = (await self._client.get(self._remote.id, request_timeout=CALL_S)).state
        except (DaytonaNotFoundError, DaytonaGoneError):
            return SandboxLost(f"sandbox {self.id} is gone: Daytona does not know it any more", cause=error)
        except DaytonaError:
            return failures.of_command(error, doing)
        if state is not None and state.value != RUNNING:
            return SandboxLost(f"sandbox {self.id} is gone: it is {state.value}", cause=error)
        return failures.of_command(error, doing)

    async def _remove(self) -> None:
        await removed(self._client, self._remote)


async def removed(client: AsyncDaytona, remote: AsyncSandbox) -> None:
    """Delete a sandbox; one that is not there is deleted already. Raises SandboxError."""
    for _ in range(PATIENCE):
        try:
            await remote.delete(timeout=CALL_S)
            return
        except (DaytonaNotFoundError, DaytonaGoneError):
            return
        except DaytonaConflictError:
            await asyncio.sleep(0.5)  # a change of its state is in progress
        except DaytonaError as error:
            raise SandboxError(f"could not remove sandbox {remote.name}: {error}", cause=error) from error
    raise SandboxError(f"could not remove sandbox {remote.name}: a change of its state does not end")
