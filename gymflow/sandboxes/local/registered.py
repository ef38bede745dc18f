"""What providers share whose sandboxes are processes of this machine: each is written down, whoever started it."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gymflow.sandboxes.interface import Provider, SandboxInfo
from gymflow.sandboxes.labels import is_orphan, matches, start_time
from gymflow.sandboxes.local import cgroups, state
from gymflow.sandboxes.local.spawned import SpawnedSandbox


class RegisteredProvider(Provider):
    """Lists and removes by what is written down, and stops its own sandboxes when it is closed."""

    def __init__(self) -> None:
        self._open: dict[str, SpawnedSandbox] = {}

    def opened(self, sandbox: SpawnedSandbox) -> None:
        """Remember a sandbox until it stops."""

        def forget() -> None:
            self._open.pop(sandbox.id, None)

        self._open[sandbox.id] = sandbox
        sandbox.on_stop = forget

    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        return [SandboxInfo(e.sandbox_id, e.labels) for e in state.entries(self.name) if matches(e.labels, labels)]

    async def remove(self, sandbox_id: str) -> None:
        if (sandbox := self._open.get(sandbox_id)) is not None:
            await sandbox.stop()
            return
        for entry in state.entries(self.name):
            if entry.sandbox_id == sandbox_id:
                await _remove(entry)

    async def clean(self) -> int:
        """Remove what killed processes left behind: sandboxes by label, control groups by name. How many."""
        gone = [entry for entry in state.entries(self.name) if is_orphan(entry.labels)]
        for entry in gone:
            await self.remove(entry.sandbox_id)
        tree = cgroups.detect()
        left = cgroups.orphans(tree) if tree else []
        for folder in left:
            await cgroups.existing([folder]).remove()
        return len(gone) + len({folder.name for folder in left})

    async def close(self) -> None:
        for sandbox in [*self._open.values()]:
            await sandbox.stop()


async def _remove(entry: state.Entry) -> None:
    """Remove another process's sandbox."""
    if entry.init and start_time(entry.init[0]) == entry.init[1]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(entry.init[0], signal.SIGKILL)
    await cgroups.existing([Path(folder) for folder in entry.cgroups]).remove()
    for folder in entry.folders:
        await asyncio.to_thread(remove_folder, Path(folder))
    entry.path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder that a sandbox wrote in, also where it took away its own rights to it, or nested folders by the thousand,
    which `shutil.rmtree` cannot follow."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
