"""The `apptainer` provider: one instance per sandbox, in user namespaces, without any right."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import images
from gymflow.sandboxes.apptainer import command
from gymflow.sandboxes.apptainer.image import Image, located, looked_at, named
from gymflow.sandboxes.apptainer.sandbox import ApptainerSandbox, Place
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import Capability, Mount, Sandbox, refuse_options, refuse_unsupported
from gymflow.sandboxes.labels import new_id, owned
from gymflow.sandboxes.local import cgroups
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.registered import RegisteredProvider
from gymflow.sandboxes.local.spawner import Spawner
from gymflow.sandboxes.local.state import Entry
from gymflow.sandboxes.local.tool import Tool


class ApptainerProvider(RegisteredProvider):
    """Limits come from control groups where this process may make them."""

    name = "apptainer"

    def __init__(self) -> None:
        super().__init__()
        self._images: dict[tuple[str, str], Image] = {}

    @property
    def capabilities(self) -> Capability:
        found = (
            Capability.NETWORK_NONE
            | Capability.NETWORK_GATEWAY
            | Capability.NETWORK_OPEN
            | Capability.KILL_TREE
            | Capability.SEPARATE_STDERR
            | Capability.IMAGES
            | Capability.MOUNTS
            | Capability.USAGE
            | Capability.MEMORY_LIMIT
        )
        return found | cgroups.capabilities()

    async def start(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> Sandbox:
        refuse_unsupported(self, spec, mounts)
        refuse_options(self, spec, ())
        tool = command.found()
        image = await self._image(tool, spec)
        sandbox = self._prepared(spec, tool, image, owned(labels, wall_s=spec.limits.wall_s))
        self.opened(sandbox)
        try:
            await sandbox.boot(mounts)
            if gateway is not None:
                await sandbox.open_gateway(gateway)
            await sandbox.furnish()
        except BaseException:
            await asyncio.shield(sandbox.stop())
            raise
        return sandbox

    def _prepared(self, spec: SandboxSpec, tool: Tool, image: Image, labels: Mapping[str, str]) -> ApptainerSandbox:
        """Everything written down, so that nothing is left of it whatever comes."""
        bounds = Bounds.of(spec.limits)
        sandbox_id = new_id()
        tree = cgroups.detect()
        group = bounds.group(sandbox_id)
        keeper = tree.create(cgroups.group_name(f"{sandbox_id}-keeper")) if tree else None
        folder = Path(tempfile.mkdtemp(prefix=f"{sandbox_id}-"))
        tool.give(folder)
        groups = [str(path) for one in (group, keeper) if one is not None for path in one.folders]
        entry = Entry(sandbox_id, dict(labels), groups, [str(folder)], provider=self.name)
        if tree is not None:
            # Without groups the instance would live on, and nobody would find it: then the entry stays for `clean`.
            Spawner.shared().track(sandbox_id, cgroups=groups, files=[str(entry.path)], folders=entry.folders)
        entry.write()
        return ApptainerSandbox(
            spec, tool=tool, place=Place(folder, group, keeper), bounds=bounds, entry=entry, image=image
        )

    async def _image(self, tool: Tool, spec: SandboxSpec) -> Image:
        path = located(named(spec.image))
        key = (images.version(path), spec.workdir)
        if key not in self._images:
            self._images[key] = await looked_at(tool, path, spec.workdir)
        return self._images[key]

    async def image_identity(self, image: str | None) -> str:
        """The digest of an image that was built here, or of a `.sif` file's bytes; its name where it is not here."""
        name = named(image)
        try:
            path = located(name)
        except (SandboxUnavailable, SandboxUnsupported):
            return name
        return images.identity(name) if path.is_dir() else await images.file_identity(path)
