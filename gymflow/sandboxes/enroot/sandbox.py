"""An Enroot container as a sandbox: `enroot start` keeps it, every command is an `enroot exec`."""

import asyncio
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import ExecResult, Mount
from gymflow.sandboxes.labels import start_time
from gymflow.sandboxes.local.cgroups import Cgroup
from gymflow.sandboxes.local.layout import PATH, Arguments
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.output import Stream
from gymflow.sandboxes.local.registered import remove_folder
from gymflow.sandboxes.local.running import KILLED
from gymflow.sandboxes.local.spawned import SpawnedSandbox
from gymflow.sandboxes.local.spawner import Child, Spawner
from gymflow.sandboxes.local.state import Entry
from gymflow.sandboxes.local.tool import Tool
from gymflow.sandboxes.local.tree import end_marked
from gymflow.sandboxes.posix import ShellSandbox

HOME = "/tmp"
START_S = 120.0
WHOSE = "GYMFLOW_SANDBOX"
"""Variable of every process in a sandbox: there is no namespace whose end would end them all."""
RC = '#!/bin/sh\nexec "$@"\n'
"""Stands for the image's own start script, which would run what the image is made for."""
KEEP = 'mkdir -p "$1"; echo $$; exec cat >/dev/null'
ENTER = 'eval "$(dd bs="$1" count=1 2>/dev/null)" || exit 126; shift; exec "$@"'
"""The variables and the folder come first on the input: an argument would show them to the whole machine, and Enroot's own
`--env` has no line breaks."""


class EnrootSandbox(ShellSandbox, SpawnedSandbox):
    """Its root file system is a folder of this machine, and goes with it."""

    def __init__(
        self, spec: SandboxSpec, *, tool: Tool, folder: Path, group: Cgroup | None, bounds: Bounds, entry: Entry
    ) -> None:
        super().__init__(
            entry.sandbox_id, spec, "weak", group=group, bounds=bounds, entry=entry, spawner=Spawner.shared()
        )
        self._tool = tool
        self._folder = folder
        self._keeper: Child | None = None
        self._stdin: int | None = None

    async def boot(self, image: Path, mounts: Sequence[Mount]) -> None:
        """Unpack the image, start the container and learn the process that commands follow."""
        for name in ("data", "run", "cache", "config", "tmp"):
            (self._folder / name).mkdir()
            self._tool.give(self._folder / name)
        script = self._folder / "rc"
        script.write_text(RC)
        script.chmod(0o755)
        shown = Arguments()
        words = ["create", "--name", self.id, "--", shown.shown(image)]
        made = await self._tool.call(words, env=self._settings(), stage=shown.staged, join=self._join())
        if not made.ok:
            raise SandboxUnavailable(f"enroot did not unpack {image}: {made.text().strip()[-500:]}")
        await self._start(script, mounts)
        probe = await self.exec("true", cwd="/")
        if not probe.ok:
            raise SandboxUnavailable(f"no command runs in the container: {probe.text().strip()[-300:]}")

    async def _start(self, script: Path, mounts: Sequence[Mount]) -> None:
        arguments = Arguments()
        arguments.add("start", "--rw", "--rc", str(script))
        for mount in mounts:
            arguments.add("--mount", _entry(arguments.shown(mount.source), mount.target))
        arguments.add("--", self.id, "/bin/sh", "-c", KEEP, "sh", self.spec.workdir)
        ready = asyncio.Event()
        answer, problems = Stream(64, lambda _: ready.set()), Stream(4096, lambda _: None)
        source, self._stdin = os.pipe2(os.O_CLOEXEC)
        try:
            request = self._tool.request(arguments.words, env=self._settings(), stage=arguments.staged)
            request |= {"join": self._join(), "rlimits": self.bounds.rlimits()}
            self._keeper = self.spawner.spawn(request, {0: source, 1: answer.write_fd, 2: problems.write_fd})
            for stream in (answer, problems):
                stream.close_writer()
            waiting: asyncio.Future[Any] = asyncio.ensure_future(ready.wait())
            await asyncio.wait({waiting, self._keeper.exited}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            told = answer.finish().split()
            if not told:
                raise SandboxUnavailable(
                    f"enroot did not start the container: {problems.finish().decode(errors='replace').strip()[-500:]}"
                )
        finally:
            os.close(source)
            for stream in (answer, problems):
                stream.finish()
        pid = int(told[0])
        self.entry = replace(self.entry, init=(pid, start_time(pid) or 0))
        self.entry.write()
        self.limit_life(self.spec.limits.wall_s)

    def _join(self) -> list[str]:
        return self.group.join if self.group else []

    def _settings(self) -> dict[str, str]:
        """Enroot's own variables: everything that it writes is ours, and nobody's hooks and mounts apply."""
        folder = self._folder
        return {
            "PATH": f"{PATH}:{Path(self._tool.path).parent}",
            "HOME": str(folder / "tmp"),
            "ENROOT_DATA_PATH": str(folder / "data"),
            "ENROOT_RUNTIME_PATH": str(folder / "run"),
            "ENROOT_CACHE_PATH": str(folder / "cache"),
            "ENROOT_CONFIG_PATH": str(folder / "config"),
            "ENROOT_TEMP_PATH": str(folder / "tmp"),
            "ENROOT_LOGIN_SHELL": "no",
            WHOSE: self.id,
        }

    def place(self) -> dict[str, Any]:
        return {}

    def environment(self) -> Mapping[str, str]:
        return {
            "PATH": PATH, "HOME": HOME, "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", WHOSE: self.id, **self.spec.env,
        }  # fmt: skip

    def request(
        self, argv: list[str], *, env: Mapping[str, str], cwd: str, stdin: bytes | None
    ) -> tuple[dict[str, Any], bytes | None]:
        assert self.entry.init is not None
        for name in env:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise SandboxUnsupported(f"sandbox provider `enroot` cannot set a variable named {name!r}")
        settings = "".join(f"export {name}={shlex.quote(value)};" for name, value in env.items())
        head = f"{settings} cd -- {shlex.quote(cwd)} || exit 126;\n".encode()
        enter = ["/bin/sh", "-c", ENTER, "sh", str(len(head)), *argv]
        words = ["exec", "--", str(self.entry.init[0]), *enter]
        return self._tool.request(words, env=self._settings()), head + (stdin or b"")

    async def internal(
        self, argv: Sequence[str], *, stdin: bytes | None = None, keep_bytes: int = 1 << 16, timeout_s: float = 300.0
    ) -> ExecResult:
        self.require()
        request, stdin = self.request(list(argv), env=self.environment(), cwd="/", stdin=stdin)
        limit_bytes = 4 * keep_bytes + (1 << 20)
        async with self._child(request, "", stdin=stdin, keep_bytes=keep_bytes, limit_bytes=limit_bytes) as running:
            result = await running.result(timeout_s)
        if result.exit_code == KILLED or (result.exit_code and self._init_is_dead()):
            await self.confirm()
        return result

    async def release(self) -> None:
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
        if self._keeper is not None:
            self._keeper.kill()
            await asyncio.wait({self._keeper.exited}, timeout=10)
        if self.group is None:
            await end_marked(WHOSE, self.id)
        await asyncio.to_thread(remove_folder, self._folder)


def _entry(source: str, target: str) -> str:
    """A line of fstab, its fields apart by colons. Raises SandboxUnsupported for a path that has no place in one."""
    if re.search(r"[\s:]", source + target):
        raise SandboxUnsupported(f"sandbox provider `enroot` cannot mount {source!r} at {target!r}: a space or colon")
    return f"{source}:{target}:none:x-create=auto,bind,ro,nosuid,nodev"
