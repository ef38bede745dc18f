"""A command of this machine that makes containers: where it is, as whom it runs, and one call of it."""

import os
import pwd
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymflow.sandboxes.errors import SandboxUnavailable
from gymflow.sandboxes.interface import ExecResult
from gymflow.sandboxes.local.running import launched
from gymflow.sandboxes.local.spawner import Spawner

CALL_S = 300.0
KEEP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Tool:
    """`uid`, `gid`: whose its containers are, also inside; root lends them to `nobody`, since root of the machine would be
    root inside."""

    path: str
    uid: int
    gid: int

    @classmethod
    def found(cls, name: str, advice: str) -> "Tool":
        """The one on PATH. Raises SandboxUnavailable with an advice."""
        path = shutil.which(name)
        if path is None:
            raise SandboxUnavailable(f"{name} is not on PATH; {advice}")
        if os.geteuid() != 0:
            return cls(path, os.geteuid(), os.getegid())
        nobody = pwd.getpwnam("nobody")
        return cls(path, nobody.pw_uid, nobody.pw_gid)

    def give(self, folder: Path) -> None:
        """Make a folder the user's."""
        if os.geteuid() == 0:
            os.chown(folder, self.uid, self.gid)

    def request(
        self, words: Sequence[str], *, env: Mapping[str, str], stage: Sequence[tuple[str, str]] = ()
    ) -> dict[str, Any]:
        """What the spawner is asked for to run it with these arguments. `stage`: see `Arguments.shown`."""
        switch = os.geteuid() == 0
        return {
            "argv": [self.path, *words],
            "env": dict(env),
            "cwd": "/",
            "stage": list(stage),
            "uid": self.uid if switch else None,
            "gid": self.gid if switch else None,
            # A set-uid installation needs its rights.
            "drop": False,
        }

    async def call(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        stage: Sequence[tuple[str, str]] = (),
        join: Sequence[str] = (),
        timeout_s: float = CALL_S,
    ) -> ExecResult:
        """Run it to its end. `join`: control groups that it is put in."""
        request = {**self.request(words, env=env, stage=stage), "join": list(join)}
        starting = launched(
            Spawner.shared(), request, stdin=None, keep_bytes=KEEP_BYTES, limit_bytes=16 * KEEP_BYTES, group=None
        )
        async with starting as running:
            return await running.result(timeout_s)
