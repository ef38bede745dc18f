"""The `local` provider: bubblewrap makes the sandbox, control groups bound it, the spawner starts what runs in it."""

import asyncio
import contextlib
import itertools
import platform
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import images
from gymflow.sandboxes.errors import SandboxLost, SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import (
    KEEP_BYTES,
    Capability,
    Command,
    ExecResult,
    Isolation,
    Mount,
    Sandbox,
    argv_of,
    refuse_unsupported,
)
from gymflow.sandboxes.labels import new_id, owned
from gymflow.sandboxes.local import cgroups, state
from gymflow.sandboxes.local.host import HostSandbox
from gymflow.sandboxes.local.layout import compose, identity, refuse_read_only
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.output import Stream
from gymflow.sandboxes.local.platform import Bubblewrap, bubblewrap, host_identity, landlock_abi
from gymflow.sandboxes.local.registered import RegisteredProvider
from gymflow.sandboxes.local.running import Running, launched
from gymflow.sandboxes.local.sandbox import LocalSandbox
from gymflow.sandboxes.local.spawned import SpawnedSandbox
from gymflow.sandboxes.local.spawner import Spawner

READY_S = 30.0
ONE_SHOT_FILES = 48
"""More files than this go through a started sandbox: each takes a descriptor."""


_numbers = itertools.count(1)
"""Tells the one-shot sandboxes of this process apart, whichever provider instance starts them."""


class LocalProvider(RegisteredProvider):
    """Namespaces, or, where the run demands less than full isolation, Landlock or nothing."""

    name = "local"

    def __init__(self, isolation: Isolation = "full") -> None:
        super().__init__()
        self._demanded = isolation

    @property
    def isolation(self) -> Isolation:
        """The best that this machine can do and the run accepts."""
        if isinstance(bubblewrap(), Bubblewrap):
            return "full"
        if self._demanded == "full":
            return "full"
        return "weak" if landlock_abi() else "none"

    @property
    def capabilities(self) -> Capability:
        tree = cgroups.detect()
        controllers = tree.controllers if tree else frozenset()
        found = Capability.SEPARATE_STDERR | Capability.MEMORY_LIMIT | Capability.WALL_LIMIT | Capability.USAGE
        if "cpu" in controllers:
            found |= Capability.CPU_LIMIT
        if "memory" in controllers:
            found |= Capability.OOM_REPORT
        if tree is not None:
            found |= Capability.KILL_TREE | Capability.PROCESS_LIMIT
        if self.isolation != "full":
            network = Capability.NETWORK_NONE if self.isolation == "weak" and landlock_abi() >= 4 else Capability.NONE
            return found | Capability.NETWORK_OPEN | network
        return (
            found
            | Capability.NETWORK_NONE
            | Capability.NETWORK_GATEWAY
            | Capability.NETWORK_OPEN
            | Capability.PROCESS_LIMIT
            | Capability.DISK_LIMIT
            | Capability.USER
            | Capability.IMAGES
            | Capability.MOUNTS
        )

    async def start(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> Sandbox:
        self._refuse(spec, mounts)
        if self.isolation != "full":
            sandbox: SpawnedSandbox = await HostSandbox.start(
                spec, self.isolation, owned(labels, wall_s=spec.limits.wall_s)
            )
        else:
            sandbox = await self._start(spec, owned(labels, wall_s=spec.limits.wall_s), mounts)
        self.opened(sandbox)
        try:
            if gateway is not None and isinstance(sandbox, LocalSandbox):
                await sandbox.open_gateway(gateway)
            await sandbox.furnish()
        except BaseException:
            await asyncio.shield(sandbox.stop())
            raise
        return sandbox

    async def _start(self, spec: SandboxSpec, labels: Mapping[str, str], mounts: Sequence[Mount]) -> LocalSandbox:
        bounds = Bounds.of(spec.limits)
        sandbox_id = new_id()
        uid, gid = host_identity()
        tool = _tool()
        spawner = Spawner.shared()
        group = bounds.group(sandbox_id)
        entry = state.Entry(sandbox_id, dict(labels), cgroups=[str(f) for f in group.folders] if group else [])
        spawner.track(sandbox_id, cgroups=entry.cgroups, files=[str(entry.path)])
        entry.write()
        sandbox = LocalSandbox(sandbox_id, spec, group=group, bounds=bounds, uid=uid, entry=entry, spawner=spawner)
        try:
            rootfs = images.rootfs(spec.image)
            arguments = compose(spec, rootfs=rootfs, mounts=mounts, files={}, options=tool.options)
            with arguments.stack:
                await sandbox.boot(tool.path, arguments, gid=gid, within_s=READY_S)
        except BaseException:
            await asyncio.shield(sandbox.stop())
            raise
        return sandbox

    async def run(
        self,
        spec: SandboxSpec,
        command: Command,
        *,
        files: Mapping[str, bytes] | None = None,
        mounts: Sequence[Mount] = (),
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        keep_bytes: int = KEEP_BYTES,
    ) -> ExecResult:
        """One bubblewrap, one command: no first process to wait for, nothing to enter, nothing to write down."""
        self._refuse(spec, mounts)
        put = {f"{spec.workdir}/{path}" if not path.startswith("/") else path: data
               for path, data in {**{p: t.encode() for p, t in spec.files.items()}, **(files or {})}.items()}  # fmt: skip
        if self.isolation != "full" or len(put) > ONE_SHOT_FILES or spec.network == "gateway":
            return await super().run(spec, command, files=files, mounts=mounts, stdin=stdin, timeout_s=timeout_s, keep_bytes=keep_bytes)  # fmt: skip
        async with self.one_shot(
            spec, command, files=put, mounts=mounts, stdin=stdin, keep_bytes=keep_bytes
        ) as running:
            return await running.result(timeout_s)

    @contextlib.asynccontextmanager
    async def one_shot(
        self,
        spec: SandboxSpec,
        command: Command,
        *,
        files: Mapping[str, bytes],
        mounts: Sequence[Mount] = (),
        stdin: bytes | None = None,
        keep_bytes: int = KEEP_BYTES,
        channel: int | None = None,
    ) -> AsyncIterator["OneShot"]:
        """A command that runs in a sandbox of its own, which leaving the block ends. `files`: absolute path -> content.
        `channel`: a descriptor that the command shall have, its number in the variable GYMFLOW_CHANNEL."""
        tool = _tool()
        bounds = Bounds.of(spec.limits)
        name = f"once-{next(_numbers)}"
        uid, gid = host_identity()
        spawner = Spawner.shared()
        group = bounds.group(name)
        if group is not None:
            spawner.track(name, cgroups=[str(folder) for folder in group.folders])
        status = Stream(4096, lambda _: None)
        try:
            arguments = compose(
                spec, rootfs=images.rootfs(spec.image), mounts=mounts, files=files, options=tool.options
            )
            with arguments.stack:
                if channel is not None:
                    arguments.add("--setenv", "GYMFLOW_CHANNEL", arguments.descriptor(channel))
                arguments.add("--json-status-fd", arguments.descriptor(status.write_fd))
                packed = arguments.packed()
                request: dict[str, Any] = {
                    # The shell tells a command that is missing (127) from one that failed, which bubblewrap does not.
                    "argv": [tool.path, "--args", packed, "/bin/sh", "-c", 'exec "$@"', "sh", *argv_of(command)],
                    "env": {},
                    "cwd": "/",
                    "join": group.join if group else [],
                    "rlimits": bounds.rlimits(),
                    "uid": uid,
                    "gid": gid,
                    "stage": arguments.staged,
                    "drop": False,
                }
                starting = launched(
                    spawner,
                    request,
                    stdin=stdin,
                    keep_bytes=keep_bytes,
                    limit_bytes=spec.limits.output_mib << 20,
                    group=group,
                    descriptors=arguments.descriptors,
                )
                async with starting as running:
                    status.close_writer()
                    arguments.stack.close()
                    yield OneShot(running, status, spec.limits.wall_s)
        finally:
            status.finish()
            if group is not None:
                # Nobody has to wait until the kernel has let go of a group that nothing runs in.
                group.kill()
                spawner.discard(name)

    def _refuse(self, spec: SandboxSpec, mounts: Sequence[Mount]) -> None:
        if spec.options:
            raise SandboxUnsupported(f"sandbox provider `local` has no options; got {', '.join(sorted(spec.options))}")
        working = bubblewrap()
        if self.isolation == "full" and isinstance(working, str):
            raise SandboxUnavailable(
                f"this machine cannot isolate a sandbox: {working}. Use the docker provider, or accept less with "
                f"GYMFLOW_ISOLATION=weak (Landlock: files and TCP only) or `--unsafe-host` (nothing)"
            )
        refuse_unsupported(self, spec, mounts)
        if self.isolation == "full":
            identity(spec.user)
            refuse_read_only(spec, images.rootfs(spec.image))

    async def image_identity(self, image: str | None) -> str:
        if image in (None, "host"):
            system = platform.freedesktop_os_release() if sys.platform == "linux" else {}
            return f"host {system.get('ID', '?')} {system.get('VERSION_ID', '')} python {platform.python_version()}"
        return images.identity(image or "")


class OneShot:
    """A one-command sandbox on its way; leaving its block ends it."""

    def __init__(self, running: Running, status: Stream, wall_s: float | None) -> None:
        self._running = running
        self._status = status
        self._wall_s = wall_s

    async def result(self, timeout_s: float) -> ExecResult:
        """Its end. Raises SandboxUnavailable where the sandbox itself could not be made, SandboxLost where its life ended first."""
        wall_s = self._wall_s
        result = await self._running.result(timeout_s if wall_s is None else min(timeout_s, wall_s))
        if wall_s is not None and wall_s < timeout_s and result.outcome == "timeout":
            raise SandboxLost(f"the sandbox is gone: its {wall_s:g} s are over")
        if result.outcome == "exited" and b'"exit-code"' not in self._status.finish():
            raise SandboxUnavailable(f"the sandbox could not be made: {result.text().strip()[:500]}")
        return result

    async def ended(self, within_s: float) -> ExecResult | None:
        """How it ended by itself within that time; None where it still runs."""
        return await self.result(0) if await self._running.ended(within_s) else None


def _tool() -> Bubblewrap:
    working = bubblewrap()
    if isinstance(working, str):
        raise SandboxUnavailable(f"this machine cannot isolate a sandbox: {working}")
    return working
