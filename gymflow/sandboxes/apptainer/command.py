"""The `apptainer` command: where it is, as whom it runs, and one call of it.

Command line: https://apptainer.org/docs/user/1.4/cli.html
"""

import os
import pwd
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gymflow.sandboxes.errors import SandboxUnavailable
from gymflow.sandboxes.interface import ExecResult
from gymflow.sandboxes.local.layout import PATH, Arguments
from gymflow.sandboxes.local.running import launched
from gymflow.sandboxes.local.spawner import Spawner

CALL_S = 300.0
KEEP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Apptainer:
    """One installation. `uid`, `gid`: whose instances they are, also inside; root lends them to `nobody`, since root of the
    machine would be root inside."""

    path: str
    uid: int
    gid: int

    @classmethod
    def found(cls) -> "Apptainer":
        """The one on PATH. Raises SandboxUnavailable."""
        path = shutil.which("apptainer")
        if path is None:
            raise SandboxUnavailable(
                "apptainer is not on PATH; https://apptainer.org/docs/admin/latest/installation.html tells how to install it "
                "(no rights are needed where the kernel has user namespaces)"
            )
        if os.geteuid() != 0:
            return cls(path, os.geteuid(), os.getegid())
        nobody = pwd.getpwnam("nobody")
        return cls(path, nobody.pw_uid, nobody.pw_gid)

    def give(self, folder: Path) -> None:
        """Make a folder the user's."""
        if os.geteuid() == 0:
            os.chown(folder, self.uid, self.gid)

    async def call(
        self, arguments: Arguments, *, home: Path, join: Sequence[str] = (), timeout_s: float = CALL_S
    ) -> ExecResult:
        """Run it with these arguments. `home`: a folder of the user, for what it writes down; `join`: control groups."""
        switch = os.geteuid() == 0
        request = {
            "argv": [self.path, *arguments.words],
            "env": {
                "PATH": f"{PATH}:{Path(self.path).parent}",
                "HOME": str(home),
                "APPTAINER_CONFIGDIR": str(home / "config"),
                "APPTAINER_CACHEDIR": str(home / "cache"),
                "APPTAINER_TMPDIR": str(home),
            },
            "cwd": "/",
            "join": list(join),
            "stage": arguments.staged,
            "uid": self.uid if switch else None,
            "gid": self.gid if switch else None,
            # A set-uid installation needs its rights.
            "drop": False,
        }
        starting = launched(
            Spawner.shared(), request, stdin=None, keep_bytes=KEEP_BYTES, limit_bytes=16 * KEEP_BYTES, group=None
        )
        async with starting as running:
            return await running.result(timeout_s)
