"""A sandbox whose commands this machine's spawner starts: bounded, ended as a tree, written down for whoever cleans up."""

import asyncio
import contextlib
import itertools
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.errors import SandboxLost, SandboxUnsupported
from gymflow.sandboxes.interface import KEEP_BYTES, Command, ExecResult, Isolation, Sandbox, argv_of
from gymflow.sandboxes.labels import is_dying, start_time
from gymflow.sandboxes.local.cgroups import Cgroup
from gymflow.sandboxes.local.limits import Bounds
from gymflow.sandboxes.local.running import KILLED, Running, launched
from gymflow.sandboxes.local.spawner import Spawner
from gymflow.sandboxes.local.state import Entry
from gymflow.sandboxes.local.tree import end_marked
from gymflow.sandboxes.posix import MARK

CONFIRMATIONS = 5


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

    @abstractmethod
    def place(self) -> dict[str, Any]:
        """The part of a request that puts a child into the sandbox."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """What every command starts with."""

    def request(
        self, argv: list[str], *, env: Mapping[str, str], cwd: str, stdin: bytes | None
    ) -> tuple[dict[str, Any], bytes | None]:
        """What runs a command in the sandbox, and what it gets as input."""
        return {"argv": argv, "env": dict(env), "cwd": cwd}, stdin

    async def release(self) -> None:
        """What goes after the processes have."""

    def alive(self) -> bool:
        return self._stopping is None and not self._init_is_dead()

    def _init_is_dead(self) -> bool:
        if self.entry.init is None:
            return False
        pid, started = self.entry.init
        return start_time(pid) != started or is_dying(pid)

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
            raise SandboxUnsupported(
                f"sandbox provider `{self.spec.provider}` cannot run a command as {user!r}: one user per sandbox"
            )
        self.require()
        mark = f"{self.id}.{next(self._mark)}"
        variables = {**self.environment(), **(env or {}), MARK: mark}
        request, stdin = self.request(argv_of(command), env=variables, cwd=self.resolve(cwd or ""), stdin=stdin)
        async with self._child(request, mark, stdin=stdin, keep_bytes=keep_bytes) as running:
            try:
                result = await running.result(timeout_s)
            except SandboxLost as error:
                raise self.lost() from error
        if (result.exit_code == KILLED and result.outcome in ("killed", "oom")) or (
            result.exit_code and self._init_is_dead()
        ):
            await self.confirm()
        return result

    def require(self) -> None:
        if not self.alive():
            raise self.lost()

    async def confirm(self) -> None:
        """Raises SandboxLost where the command died because its sandbox did."""
        # A namespace's first process is seen to be dead a moment later than those that die with it.
        for _ in range(CONFIRMATIONS if self.entry.init is not None else 0):
            if self._init_is_dead():
                raise self.lost()
            await asyncio.sleep(0.01)
        self.require()

    def lost(self) -> SandboxLost:
        oom = False
        if self._stopping is None:  # nobody here ended it
            oom = self.group is not None and self.group.oom_kills() > 0
            self._why = "its memory limit was exceeded" if oom else "its first process was killed"
        return SandboxLost(f"sandbox {self.id} is gone: {self._why}", oom=oom)

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
                {**self.place(), "join": join, "rlimits": self.bounds.rlimits(), **request},
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
