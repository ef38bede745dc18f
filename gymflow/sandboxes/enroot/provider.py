"""The `enroot` provider: one container per sandbox, unpacked from a squashfs image.

Command line: https://github.com/NVIDIA/enroot/tree/master/doc
"""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import images
from gymflow.sandboxes.enroot.sandbox import EnrootSandbox
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import (
    Capability,
    Isolation,
    Mount,
    Sandbox,
    refuse_options,
    refuse_unsupported,
)
from gymflow.sandboxes.labels import new_id, owned
from gymflow.sandboxes.local import cgroups
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.registered import RegisteredProvider
from gymflow.sandboxes.local.spawner import Spawner
from gymflow.sandboxes.local.state import Entry
from gymflow.sandboxes.local.tool import Tool

IMAGE = "GYMFLOW_ENROOT_IMAGE"
"""Environment variable: the image where a spec names none."""
ADVICE = "https://github.com/NVIDIA/enroot/blob/master/doc/installation.md tells how to install it"


class EnrootProvider(RegisteredProvider):
    """Enroot separates file systems only: network and processes of the machine stay visible, so a run has to accept weak
    isolation. Limits come from control groups where this process may make them."""

    name = "enroot"

    @property
    def isolation(self) -> Isolation:
        return "weak"

    @property
    def capabilities(self) -> Capability:
        found = (
            Capability.NETWORK_OPEN
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
        tool = Tool.found("enroot", ADVICE)
        image = located(spec.image or os.environ.get(IMAGE))
        sandbox = self._prepared(spec, tool, owned(labels, wall_s=spec.limits.wall_s))
        self.opened(sandbox)
        try:
            await sandbox.boot(image, mounts)
            await sandbox.furnish()
        except BaseException:
            await asyncio.shield(sandbox.stop())
            raise
        return sandbox

    def _prepared(self, spec: SandboxSpec, tool: Tool, labels: Mapping[str, str]) -> EnrootSandbox:
        """Everything written down, so that nothing is left of it whatever comes."""
        bounds = Bounds.of(spec.limits)
        sandbox_id = new_id()
        group = bounds.group(sandbox_id)
        folder = Path(tempfile.mkdtemp(prefix=f"{sandbox_id}-"))
        tool.give(folder)
        groups = [str(path) for path in group.folders] if group else []
        entry = Entry(sandbox_id, dict(labels), groups, [str(folder)], provider=self.name)
        Spawner.shared().track(sandbox_id, cgroups=groups, files=[str(entry.path)], folders=entry.folders)
        entry.write()
        return EnrootSandbox(spec, tool=tool, folder=folder, group=group, bounds=bounds, entry=entry)

    async def image_identity(self, image: str | None) -> str:
        """The digest of the image's file; its name where it is not here."""
        name = image or os.environ.get(IMAGE)
        try:
            return await images.file_identity(located(name))
        except (SandboxUnavailable, SandboxUnsupported):
            return await super().image_identity(name)


def located(name: str | None) -> Path:
    """Where an image lies: what `gym sandbox image` built, or a `.sqsh` file. Raises SandboxUnavailable, SandboxUnsupported."""
    if not name:
        raise SandboxUnsupported(f"sandbox provider `enroot` needs an image: name one, or set {IMAGE}")
    if "://" in name:
        raise SandboxUnsupported(
            f"image {name!r} has to be fetched first: `enroot import --output image.sqsh {name}`, then "
            "`image: /path/to/image.sqsh`"
        )
    if not name.endswith(".sqsh"):
        if not (built := images.squashed(name)).is_file():
            raise SandboxUnavailable(f"image {name!r} is not here; build it with `gym sandbox image --provider enroot`")
        return built
    path = Path(name)
    # What a task's row means must not depend on where a run was started.
    if not path.is_absolute():
        raise SandboxUnsupported(f"image {name!r}: a .sqsh file is named by its absolute path")
    if not path.is_file():
        raise SandboxUnavailable(f"image {name!r} is not here")
    return path
