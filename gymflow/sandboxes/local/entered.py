"""A sandbox whose first process holds its namespaces: every command enters them, and no more than that."""

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gymflow.sandboxes.errors import SandboxError
from gymflow.sandboxes.labels import start_time
from gymflow.sandboxes.local import seccomp
from gymflow.sandboxes.local.files import FileSandbox
from gymflow.sandboxes.local.gateway import GATEWAY_PORT, serve_gateway


class EnteredSandbox(FileSandbox):
    """`entry.init` is its first process; the spawner keeps hold of it under the sandbox's id."""

    _environment: dict[str, str]
    _identity: tuple[int, int]
    """User and group of commands, as numbers inside."""
    _gateway: asyncio.Server | None = None

    async def hold(self, pid: int) -> None:
        """Make a process of this machine the one that commands follow."""
        await self.spawner.hold(self.id, pid)
        self.entry = replace(self.entry, init=(pid, start_time(pid) or 0))
        self.entry.write()
        self.limit_life(self.spec.limits.wall_s)

    async def seal(self) -> None:
        """Let nobody inside make user namespaces. Raises SandboxError where this kernel does not."""
        request = {"seal": True, "argv": ["/bin/sh", "-c", ":"], "env": {}, "cwd": "/"}
        async with self._child(request, "", stdin=None, keep_bytes=1024) as running:
            assert running.child is not None
            end = await running.child.exited
        if end.error or end.exit_code:
            raise SandboxError(f"a command cannot be run: {end.error} {os.strerror(end.errno)} {end.exit_code}")

    async def open_gateway(self, gateway: Path) -> None:
        """Listen inside on loopback, and carry every connection to the gateway's socket out here."""
        self.require()
        request = {"files": {"do": "listen", "path": "", "port": GATEWAY_PORT}, "argv": [], "env": {}, "cwd": "/"}
        async with self._child(request, "", stdin=None, keep_bytes=0) as running:
            assert running.child is not None
            end = await running.child.exited
        if end.descriptor is None:
            raise SandboxError(f"no way to the model gateway: {end.error} {os.strerror(end.errno)}")
        self._gateway = await serve_gateway(socket.socket(fileno=end.descriptor), gateway)
        self._environment["GYMFLOW_GATEWAY"] = f"http://127.0.0.1:{GATEWAY_PORT}"

    def place(self) -> dict[str, Any]:
        uid, gid = self._identity
        place: dict[str, Any] = {"enter": self.id, "uid": uid, "gid": gid}
        if self.spec.network != "open" and (code := seccomp.program()):
            place["seccomp"] = code.hex()
        return place

    def environment(self) -> Mapping[str, str]:
        return self._environment

    async def release(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
