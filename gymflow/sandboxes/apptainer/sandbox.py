"""An Apptainer instance as a sandbox: Apptainer makes its namespaces, commands enter them."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.apptainer import command
from gymflow.sandboxes.apptainer.image import Image
from gymflow.sandboxes.errors import SandboxError, SandboxUnavailable
from gymflow.sandboxes.interface import Mount
from gymflow.sandboxes.local.cgroups import Cgroup
from gymflow.sandboxes.local.entered import EnteredSandbox
from gymflow.sandboxes.local.layout import PATH, Arguments
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.registered import remove_folder
from gymflow.sandboxes.local.spawner import Spawner
from gymflow.sandboxes.local.state import Entry
from gymflow.sandboxes.local.tool import Tool

HOME = "/home/agent"
WAIT = "#!/bin/sh\nwhile :; do sleep 86400; done\n"
NOT_MOUNTED = "cwd,hostfs,bind-paths,sys"


@dataclass(frozen=True, slots=True)
class Place:
    """What of this machine a sandbox has: its folder, the group that bounds its commands, and the one that Apptainer's own
    processes are in, since they are neither the agent's doing nor few."""

    folder: Path
    group: Cgroup | None
    keeper: Cgroup | None


class ApptainerSandbox(EnteredSandbox):
    """Everything that can be written lies in one folder of this machine, apart from a small layer over the image."""

    def __init__(
        self, spec: SandboxSpec, *, tool: Tool, place: Place, bounds: Bounds, entry: Entry, image: Image
    ) -> None:
        super().__init__(
            entry.sandbox_id, spec, "full", group=place.group, bounds=bounds, entry=entry, spawner=Spawner.shared()
        )
        self._tool = tool
        self._keeper = place.keeper
        self._folder = place.folder
        self._image = image
        self._identity = (tool.uid, tool.gid)
        self._environment = {
            "PATH": PATH, "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **image.environment, "HOME": HOME, **spec.env,
        }  # fmt: skip

    async def boot(self, mounts: Sequence[Mount]) -> None:
        """Start the instance, close it, and see that a command runs in it."""
        for name in ("home", "config"):
            (self._folder / name).mkdir()
            self._tool.give(self._folder / name)
        script = self._folder / "wait"
        script.write_text(WAIT)
        script.chmod(0o755)
        arguments = self._arguments(script, mounts)
        join = self._keeper.join if self._keeper else ()
        calling = asyncio.ensure_future(command.call(self._tool, arguments, home=self._folder, join=join))
        try:
            result = await asyncio.shield(calling)
        except asyncio.CancelledError:
            # An instance that is on its way comes to be all the same: wait, so that there is something to end.
            await asyncio.wait([calling])
            raise
        if not result.ok:
            raise SandboxUnavailable(f"apptainer did not start an instance: {result.text().strip()[-500:]}")
        await self.hold(int((self._folder / "pid").read_text()))
        try:
            await self.seal()
        except SandboxError as error:
            raise SandboxUnavailable(f"the instance cannot be used: {error.message}", cause=error) from error

    def _arguments(self, script: Path, mounts: Sequence[Mount]) -> Arguments:
        spec, folder = self.spec, self._folder
        arguments = Arguments()
        arguments.add("--quiet", "instance", "start", "--userns", "--containall", "--writable-tmpfs", "--no-privs")
        arguments.add("--no-mount", NOT_MOUNTED, "--hostname", "sandbox", "--pid-file", str(folder / "pid"))
        arguments.add("--workdir", str(folder), "--home", f"{folder / 'home'}:{HOME}")
        if spec.workdir not in (*self._image.folders, HOME, "/tmp"):
            arguments.add("--scratch", spec.workdir)
        if spec.network != "open":
            arguments.add("--net", "--network", "none")
        shown = [Mount(script, "/.singularity.d/startscript"), *mounts]
        for mount in shown:
            arguments.add("--mount", _bind(arguments.shown(mount.source), mount.target))
        arguments.add(arguments.shown(self._image.path), self.id)
        return arguments

    async def release(self) -> None:
        await super().release()
        if self._keeper is not None:
            await self._keeper.remove()
        elif (pid := self._first_process()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(remove_folder, self._folder)

    def _first_process(self) -> int | None:
        """The one that ends all others, also of a start that did not get so far as to hold it."""
        if self.entry.init is not None:
            return None if self._init_is_dead() else self.entry.init[0]
        try:
            return int((self._folder / "pid").read_text())
        except (OSError, ValueError):
            return None


def _bind(source: str, target: str) -> str:
    """A read-only mount in the CSV form, which unlike the other one has room for every path."""
    fields = ["type=bind", f"source={source}", f"destination={target}", "ro"]
    return ",".join('"' + one.replace('"', '""') + '"' for one in fields)
