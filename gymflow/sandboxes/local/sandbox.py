"""A started local sandbox: its first process holds the namespaces, every command enters them."""

import asyncio
import contextlib
import errno
import itertools
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.archive import checked, normalised
from gymflow.sandboxes.errors import (
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    SandboxUnsupported,
    TooLarge,
    UnsafePath,
)
from gymflow.sandboxes.interface import (
    GET_BYTES,
    GET_FILES,
    KEEP_BYTES,
    Command,
    ExecResult,
    Isolation,
    Sandbox,
    argv_of,
)
from gymflow.sandboxes.labels import start_time
from gymflow.sandboxes.local.cgroups import Cgroup
from gymflow.sandboxes.local.gateway import GATEWAY_PORT, serve_gateway
from gymflow.sandboxes.local.layout import Arguments, environment, identity
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.output import Stream
from gymflow.sandboxes.local.running import KILLED, Running, launched
from gymflow.sandboxes.local.spawner import Child, Spawner
from gymflow.sandboxes.local.state import Entry
from gymflow.sandboxes.local.tree import end_marked

FILE_S = 300.0
CONFIRMATIONS = 5
MARK = "GYMFLOW_EXEC"


class SpawnedSandbox(Sandbox):
    """What the isolated and the unisolated kind share: commands by spawner, ends by control group or mark."""

    def __init__(
        self, sandbox_id: str, spec: SandboxSpec, isolation: Isolation, *, group: Cgroup | None, bounds: Bounds,
        entry: Entry, spawner: Spawner,
    ) -> None:  # fmt: skip
        super().__init__(sandbox_id, spec, isolation)
        self.group = group
        self.bounds = bounds
        self.entry = entry
        self.spawner = spawner
        self.on_stop: Callable[[], None] = lambda: None
        self._numbers = itertools.count(1)
        self._spent: list[Cgroup] = []
        self._stopping: asyncio.Task[None] | None = None
        self._why = "it was stopped"
        self._timer: asyncio.TimerHandle | None = None
        self._mark = itertools.count(1)

    def place(self) -> dict[str, Any]:
        """The part of a request that puts a child into the sandbox."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        raise NotImplementedError

    async def release(self) -> None:
        """What goes after the processes have."""

    def alive(self) -> bool:
        return self._stopping is None

    def limit_life(self, wall_s: float | None) -> None:
        """Stop by itself after this many seconds."""

        def expire() -> None:
            self._why = f"its {wall_s} s are over"
            self._stopping = self._stopping or asyncio.ensure_future(self._stop())

        if wall_s is not None:
            self._timer = asyncio.get_running_loop().call_later(wall_s, expire)

    async def exec(
        self,
        command: Command,
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        timeout_s: float = 60.0,
        keep_bytes: int = KEEP_BYTES,
    ) -> ExecResult:
        if user is not None and user != (self.spec.user or "agent"):
            raise SandboxUnsupported(f"sandbox provider `local` cannot run a command as {user!r}: one user per sandbox")
        self.require()
        mark = f"{self.id}.{next(self._mark)}"
        request = {
            "argv": argv_of(command),
            "env": {**self.environment(), **(env or {}), MARK: mark},
            "cwd": self.resolve(cwd or ""),
            "rlimits": self.bounds.rlimits(),
        }
        async with self._child(request, mark, stdin=stdin, keep_bytes=keep_bytes) as running:
            result = await running.result(timeout_s)
        if result.exit_code == KILLED and result.outcome in ("killed", "oom"):
            await self.confirm()
        return result

    def require(self) -> None:
        if not self.alive():
            raise self.lost()

    async def confirm(self) -> None:
        """Raises SandboxLost where the command died because its sandbox did."""
        self.require()

    def lost(self) -> SandboxLost:
        return SandboxLost(f"sandbox {self.id} is gone: {self._why}")

    @contextlib.asynccontextmanager
    async def _child(self, request: dict[str, Any], mark: str, *, stdin: bytes | None, keep_bytes: int, limit_bytes: int | None = None) -> AsyncIterator[Running]:  # fmt: skip
        try:
            group = self.group.child(f"e{next(self._numbers)}") if self.group else None
        except OSError as error:
            raise self.lost() from error
        join = group.join if group else []
        try:
            async with launched(
                self.spawner,
                {**self.place(), "join": join, **request},
                stdin=stdin,
                keep_bytes=keep_bytes,
                limit_bytes=self.spec.limits.output_mib << 20 if limit_bytes is None else limit_bytes,
                group=group,
                end_tree=lambda: end_marked(MARK, mark),
            ) as running:
                yield running
        finally:
            if group is not None:
                self._spent.append(group)
                # Usually its last process is not reaped yet, or lives on in the background: tried again later.
                self._spent = [old for old in self._spent if not old.discarded()]

    async def _file(
        self, request: dict[str, Any], *, stdin: bytes | None = None, keep_bytes: int = KEEP_BYTES
    ) -> ExecResult:
        """A file operation inside, as the sandbox's user."""
        self.require()
        full = {"files": request, "argv": [], "env": {}, "cwd": "/", "rlimits": self.bounds.rlimits()}
        async with self._child(full, "", stdin=stdin, keep_bytes=keep_bytes, limit_bytes=2 * keep_bytes) as running:
            assert running.child is not None
            done, _ = await asyncio.wait({running.child.exited}, timeout=FILE_S)
            if not done:
                raise SandboxError(f"{request['do']} {request['path']}: no answer for {FILE_S:.0f} s")
            end = running.child.exited.result()
            if end.error == "files":
                raise _file_error(end.errno, request)
            if end.exit_code == KILLED:
                await self.confirm()
            if end.error == "enter" or end.error == "cgroup":
                raise self.lost()
            if end.error or end.exit_code:
                raise SandboxError(f"{request['do']} {request['path']}: {end.error or end.exit_code}")
            return running.outcome(end)

    async def put(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        await self._file({"do": "put_file", "path": self.inside(path), "mode": mode, "size": len(data)}, stdin=data)

    async def get(self, path: str, *, max_bytes: int = GET_BYTES) -> bytes:
        result = await self._file(
            {"do": "get_file", "path": self.inside(path), "max_bytes": max_bytes}, keep_bytes=max_bytes
        )
        if result.truncated:
            raise TooLarge(f"{path} holds more than {max_bytes} bytes")
        return result.stdout

    async def put_archive(self, path: str, archive: bytes) -> None:
        await self._file({"do": "put_archive", "path": self.inside(path)}, stdin=checked(archive))

    async def get_archive(
        self, path: str, *, max_bytes: int = GET_BYTES, max_files: int = GET_FILES, exclude: Sequence[str] = ()
    ) -> bytes:
        request = {"do": "get_archive", "path": self.inside(path), "max_bytes": max_bytes, "max_files": max_files, "exclude": list(exclude)}  # fmt: skip
        room = max_bytes + 2048 * max_files
        result = await self._file(request, keep_bytes=room)
        return normalised(result.stdout, max_bytes=max_bytes, max_files=max_files)

    def inside(self, path: str) -> str:
        """A path as commands see it."""
        return self.resolve(path)

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            if self.group is not None:
                await self.group.kill_all()
            await self.release()
            if self.group is not None:
                await self.group.remove()
        finally:
            with contextlib.suppress(OSError):
                self.entry.path.unlink()
            self.spawner.release(self.id)
            self.on_stop()


class LocalSandbox(SpawnedSandbox):
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
        self._gateway: asyncio.Server | None = None

    async def boot(self, tool: str, arguments: Arguments, *, gid: int | None, within_s: float) -> None:
        """Start the first process: `cat`, which ends when this process does, and answers once the sandbox stands."""
        ready = asyncio.Event()
        info, answer = Stream(4096, lambda _: None), Stream(64, lambda _: ready.set())
        problems = Stream(4096, lambda _: None)
        source, self._stdin = os.pipe2(os.O_CLOEXEC)
        try:
            arguments.add("--info-fd", arguments.descriptor(info.write_fd))
            packed = arguments.packed()
            request: dict[str, Any] = {
                "argv": [tool, "--args", packed, "/bin/cat"],
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
            await asyncio.wait({waiting, self._init.exited}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
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
        await self.spawner.hold(self.id, pid)
        self.entry = Entry(self.id, self.entry.labels, self.entry.cgroups, [], (pid, start_time(pid) or 0))
        self.entry.write()
        self.limit_life(self.spec.limits.wall_s)

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
        uid, _, _ = identity(self.spec.user)
        return {"enter": self.id, "uid": uid, "gid": uid}

    def environment(self) -> dict[str, str]:
        return self._environment

    def alive(self) -> bool:
        return self._stopping is None and self._init is not None and not self._init.exited.done()

    async def confirm(self) -> None:
        # A namespace's first process is seen to be dead a moment later than those that die with it.
        for _ in range(CONFIRMATIONS):
            if self._init is None or self._init.exited.done() or self._init_is_dead():
                break
            await asyncio.sleep(0.01)
        dead = self._init_is_dead()
        if (dead or not self.alive()) and self._stopping is None:
            oom = self.group is not None and self.group.oom_kills() > 0
            self._why = "its memory limit was exceeded" if oom else "its first process was killed"
            raise SandboxLost(f"sandbox {self.id} is gone: {self._why}", oom=oom)
        self.require()

    def _init_is_dead(self) -> bool:
        return self.entry.init is not None and start_time(self.entry.init[0]) != self.entry.init[1]

    async def release(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
        if self._init is not None:
            self._init.kill()
            await asyncio.wait({self._init.exited}, timeout=10)


def _file_error(number: int, request: dict[str, Any]) -> Exception:
    path = request["path"]
    match number:
        case errno.ENOENT:
            return FileNotFoundError(path)
        case errno.EISDIR:
            return IsADirectoryError(path)
        case errno.ENOTDIR:
            return NotADirectoryError(path)
        case errno.EFBIG:
            return TooLarge(f"{path} is larger than allowed")
        case errno.EINVAL | errno.ENXIO:
            return UnsafePath(f"{path} is not a regular file")
        case _:
            return PermissionError(number, os.strerror(number), path) if number in (errno.EACCES, errno.EROFS, errno.EPERM) else SandboxError(f"{request['do']} {path}: {os.strerror(number)}")  # fmt: skip
