"""Files of a sandbox by a forked child that stands in it: no program of the image is needed, and none can interfere."""

import asyncio
import errno
from collections.abc import Sequence
from typing import Any

from gymflow.sandboxes.archive import checked, normalised
from gymflow.sandboxes.errors import SandboxError, TooLarge, file_error
from gymflow.sandboxes.interface import GET_BYTES, GET_FILES, KEEP_BYTES, ExecResult
from gymflow.sandboxes.local.running import KILLED
from gymflow.sandboxes.local.spawned import SpawnedSandbox

FILE_S = 300.0


class FileSandbox(SpawnedSandbox):
    """File operations in the place where commands run, as the user that they run as."""

    async def _file(
        self, request: dict[str, Any], *, stdin: bytes | None = None, keep_bytes: int = KEEP_BYTES
    ) -> ExecResult:
        """A file operation inside, as the sandbox's user."""
        self.require()
        full = {"files": request, "argv": [], "env": {}, "cwd": "/"}
        async with self._child(full, "", stdin=stdin, keep_bytes=keep_bytes, limit_bytes=2 * keep_bytes) as running:
            assert running.child is not None
            done, _ = await asyncio.wait({running.child.exited}, timeout=FILE_S)
            if not done:
                raise SandboxError(f"{request['do']} {request['path']}: no answer for {FILE_S:.0f} s")
            end = running.child.exited.result()
            if end.error == "files":
                raise file_error(end.errno, request["path"])
            if end.exit_code == KILLED:
                await self.confirm()
                if running.outcome(end).outcome == "oom":
                    raise file_error(errno.ENOMEM, request["path"])
            if end.error == "enter" or end.error == "cgroup":
                raise self.lost()
            if end.error or end.exit_code:
                raise SandboxError(f"{request['do']} {request['path']}: {end.error or end.exit_code}")
            return running.outcome(end)

    async def put(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._file({"do": "put_file", "path": self.inside(path), "mode": mode, "size": len(data)}, stdin=data)

    async def get(self, path: str, *, max_bytes: int = GET_BYTES) -> bytes:
        result = await self._file(
            {"do": "get_file", "path": self.inside(path), "max_bytes": max_bytes}, keep_bytes=max_bytes
        )
        if result.truncated:
            raise TooLarge(f"{path} holds more than {max_bytes} bytes")
        return result.stdout

    async def put_archive(self, path: str, archive: bytes) -> None:
        await self._file({"do": "put_archive", "path": self.inside(path)}, stdin=checked(archive))

    async def get_archive(
        self, path: str, *, max_bytes: int = GET_BYTES, max_files: int = GET_FILES, exclude: Sequence[str] = ()
    ) -> bytes:
        request = {"do": "get_archive", "path": self.inside(path), "max_bytes": max_bytes, "max_files": max_files, "exclude": list(exclude)}  # fmt: skip
        room = max_bytes + 2048 * max_files
        result = await self._file(request, keep_bytes=room)
        return normalised(result.stdout, max_bytes=max_bytes, max_files=max_files)

    def inside(self, path: str) -> str:
        """A path as commands see it."""
        return self.resolve(path)
