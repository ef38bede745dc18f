"""The weaker tiers of `local`: a process of this machine that Landlock keeps from files and TCP (`weak`), or that nothing
holds back (`none`). Only a run that accepts it gets it; processes, UDP and shared memory of the machine stay within reach."""

import asyncio
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.interface import Isolation
from gymflow.sandboxes.labels import new_id
from gymflow.sandboxes.local.files import FileSandbox
from gymflow.sandboxes.local.layout import PATH
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.platform import host_identity, landlock_abi
from gymflow.sandboxes.local.registered import remove_folder
from gymflow.sandboxes.local.spawner import Spawner
from gymflow.sandboxes.local.state import Entry

READABLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs", "/proc/self")  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


class HostSandbox(FileSandbox):
    """A temporary folder stands for the workdir: commands start there and see it under its own path (`$PWD`)."""

    _home: Path
    _uid: int | None

    @classmethod
    async def start(cls, spec: SandboxSpec, isolation: Isolation, labels: Mapping[str, str]) -> "HostSandbox":
        """Make the folder and write the sandbox down."""
        sandbox_id = new_id()
        bounds = Bounds.of(spec.limits)
        group = bounds.group(sandbox_id)
        home = Path(tempfile.mkdtemp(prefix=f"{sandbox_id}-"))
        entry = Entry(sandbox_id, dict(labels), [str(f) for f in group.folders] if group else [], [str(home)])
        spawner = Spawner.shared()
        spawner.track(sandbox_id, cgroups=entry.cgroups, files=[str(entry.path)], folders=entry.folders)
        entry.write()
        sandbox = cls(sandbox_id, spec, isolation, group=group, bounds=bounds, entry=entry, spawner=spawner)
        sandbox._home = home
        sandbox._uid, _ = host_identity() if isolation == "weak" else (None, None)
        if sandbox._uid is not None:
            shutil.chown(home, sandbox._uid, sandbox._uid)
        sandbox.limit_life(spec.limits.wall_s)
        return sandbox

    def place(self) -> dict[str, Any]:
        place: dict[str, Any] = {"uid": self._uid, "gid": self._uid, "drop": self.isolation == "weak"}
        if self.isolation == "weak":
            readable = [*READABLE, sys.base_prefix, sys.prefix, sysconfig.get_path("purelib")]
            place["landlock"] = {
                "abi": landlock_abi(), "read": readable, "write": [str(self._home)], "devices": DEVICES, "tcp": self.spec.network == "open",
            }  # fmt: skip
        return place

    def environment(self) -> dict[str, str]:
        return {"PATH": PATH, "HOME": str(self._home), "TMPDIR": str(self._home), "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **self.spec.env}  # fmt: skip

    def resolve(self, path: str) -> str:
        inside = f"{self.spec.workdir}/{path}" if not path.startswith("/") else path
        if inside == self.spec.workdir or inside.startswith(f"{self.spec.workdir}/"):
            return str(self._home) + inside[len(self.spec.workdir) :]
        return inside

    async def release(self) -> None:
        await asyncio.to_thread(remove_folder, self._home)
