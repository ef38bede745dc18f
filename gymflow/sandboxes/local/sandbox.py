"""A sandbox made by bubblewrap."""

import asyncio
import json
import os
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.errors import SandboxUnavailable
from gymflow.sandboxes.local.cgroups import Cgroup
from gymflow.sandboxes.local.entered import EnteredSandbox
from gymflow.sandboxes.local.layout import Arguments, environment, identity
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.output import Stream
from gymflow.sandboxes.local.spawner import Child, Spawner
from gymflow.sandboxes.local.state import Entry

FIRST = "trap '' CHLD; exec cat"
"""Whoever ignores the end of children has the kernel bury them, also those that were left to number 1."""


class LocalSandbox(EnteredSandbox):
    """Namespaces made by bubblewrap."""

    def __init__(
        self, sandbox_id: str, spec: SandboxSpec, *, group: Cgroup | None, bounds: Bounds, uid: int | None, entry: Entry,
        spawner: Spawner,
    ) -> None:  # fmt: skip
        super().__init__(sandbox_id, spec, "full", group=group, bounds=bounds, entry=entry, spawner=spawner)
        self._uid = uid
        self._init: Child | None = None
        self._stdin: int | None = None
        self._environment = environment(spec)
        inside, _, _ = identity(spec.user)
        self._identity = (inside, inside)

    async def boot(self, tool: str, arguments: Arguments, *, gid: int | None, within_s: float) -> None:
        """Start the first process: `cat`, which ends when this process does, and answers once the sandbox stands."""
        ready = asyncio.Event()
        info, answer = Stream(4096, lambda _: None), Stream(64, lambda _: ready.set())
        problems = Stream(4096, lambda _: None)
        source, self._stdin = os.pipe2(os.O_CLOEXEC)
        try:
            # As number 1 it is out of reach for `kill -9 -1` inside.
            arguments.add("--as-pid-1", "--info-fd", arguments.descriptor(info.write_fd))
            packed = arguments.packed()
            request: dict[str, Any] = {
                "argv": [tool, "--args", packed, "/bin/sh", "-c", FIRST],
                "env": {},
                "cwd": "/",
                "join": self.group.join if self.group else [],
                "rlimits": self.bounds.rlimits(),
                "uid": self._uid,
                "gid": gid,
                "stage": arguments.staged,
                "drop": False,
            }
            self._init = self.spawner.spawn(
                request, {0: source, 1: answer.write_fd, 2: problems.write_fd, **arguments.descriptors}
            )
            for stream in (info, answer, problems):
                stream.close_writer()
            os.write(self._stdin, b"ready\n")
            waiting: asyncio.Future[Any] = asyncio.ensure_future(ready.wait())
            try:
                await asyncio.wait({waiting, self._init.exited}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if not ready.is_set():
                state = "ended" if self._init.exited.done() else f"was not ready within {within_s:.0f} s"
                await asyncio.sleep(0)
                raise SandboxUnavailable(
                    f"the sandbox's first process {state}: {problems.finish().decode(errors='replace').strip()[:500]}"
                )
            pid = json.loads(info.finish())["child-pid"]
        finally:
            os.close(source)
            for stream in (info, answer, problems):
                stream.finish()
        await self.hold(pid)

    def alive(self) -> bool:
        return self._stopping is None and self._init is not None and not self._init.exited.done()

    async def release(self) -> None:
        await super().release()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
        if self._init is not None:
            self._init.kill()
            await asyncio.wait({self._init.exited}, timeout=10)
