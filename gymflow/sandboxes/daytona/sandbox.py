"""A Daytona sandbox. Its own exec gives one text of both streams, so commands run through the script in `shim`."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence

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
from gymflow.sandboxes.shim import ENDINGS, GRACE_S, Report, ShimSandbox, Words, inlined, reported

CALL_S = 60.0
TRANSFER_S = 600
LINE_BYTES = 100_000
"""A longer command goes there as a file: the kernel takes no argument above 128 KiB."""
RUNNING = "started"
PATIENCE = 20


class DaytonaSandbox(ShimSandbox):
    """One sandbox, by name."""

    how = "text"

    def __init__(self, name: str, spec: SandboxSpec, remote: AsyncSandbox, client: AsyncDaytona) -> None:
        super().__init__(name, spec, "full", {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **spec.env})
        self._remote = remote
        self._client = client

    async def _shimmed(
        self, words: Words, *, env: Mapping[str, str], stdin: bytes | None, deadline_s: float
    ) -> tuple[Report, bytes, bytes]:
        line = shlex.join(words.argv)
        try:
            if stdin is not None:
                await self._remote.fs.upload_file(stdin, f"{words.path}.in", timeout=TRANSFER_S)
            if len(line.encode()) > LINE_BYTES:
                await self._remote.fs.upload_file(f"exec {line}\n".encode(), f"{words.path}.cmd", timeout=TRANSFER_S)
                line = f"/bin/sh {words.path}.cmd"
            done = await self._remote.process.exec(line, env=dict(env), timeout=int(deadline_s))
            first, *rest = (done.result or "").splitlines() or [""]
            report = reported(first)
            if report.where == "inline":
                return report, *inlined(rest)
            return report, *await self._downloaded(words.path)
        except DaytonaError as error:
            raise await self._told(error, "run a command") from error

    async def _downloaded(self, path: str) -> tuple[bytes, bytes]:
        found = await self._remote.fs.download_files(
            [Download(source=f"{path}.out"), Download(source=f"{path}.err")], timeout=TRANSFER_S
        )
        contents = [one.result for one in found if isinstance(one.result, bytes)]
        if len(contents) != 2:
            raise SandboxError(f"Daytona did not give a command's output: {[one.error for one in found]}")
        await self._plain(["rm", "-f", *(f"{path}.{end}" for end in ENDINGS)], deadline_s=GRACE_S)
        return contents[0], contents[1]

    async def _plain(self, argv: Sequence[str], *, deadline_s: float) -> tuple[int, str]:
        try:
            done = await self._remote.process.exec(shlex.join(argv), timeout=int(deadline_s))
        except DaytonaError as error:
            raise await self._told(error, "run a command") from error
        return int(done.exit_code or 0), done.result or ""

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
