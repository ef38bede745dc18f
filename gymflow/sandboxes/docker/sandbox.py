"""A container as a sandbox: its first process only waits, commands are execs."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gymflow.contracts.sandbox import ExecOutcome, SandboxSpec
from gymflow.sandboxes.docker.engine import Engine, EngineError, ExecStream
from gymflow.sandboxes.errors import SandboxError, SandboxLost
from gymflow.sandboxes.interface import KEEP_BYTES, Command, ExecResult, argv_of
from gymflow.sandboxes.local.gateway import GATEWAY_PORT
from gymflow.sandboxes.posix import ENTER, KILL, MARK, OOM_COUNT, ShellSandbox

AGENT = "1000:1000"
KILLED = 137
RUNTIME_LOST = 128
"""What gVisor's runtime ends a command with when the container died under it."""
PROCESSES = 256
SPARE = 64
CONFIRMATIONS = 10
AFTER_END_S = 0.2
"""How long output is still read after a command has ended, when a child that it left behind holds it open."""


class DockerSandbox(ShellSandbox):
    """One container, by name."""

    def __init__(self, sandbox_id: str, spec: SandboxSpec, engine: Engine, environment: Mapping[str, str]) -> None:
        super().__init__(sandbox_id, spec, "full")
        self._engine = engine
        self._environment = dict(environment)
        self._user = user_of(spec)
        self._marks = itertools.count(1)
        self._oom_kills = 0
        self._processes = spec.limits.processes or PROCESSES
        self._stopping: asyncio.Task[None] | None = None
        self._gateway: asyncio.Server | None = None

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
        argv = ["/bin/sh", "-c", ENTER, "sh", self.resolve(cwd or ""), *argv_of(command)]
        result = await self._run(
            argv, stdin=stdin, env=env, user=user or self._user, timeout_s=timeout_s, keep_bytes=keep_bytes,
            limit_bytes=self.spec.limits.output_mib << 20,
        )  # fmt: skip
        if result.outcome == "exited" and result.exit_code:
            return await self._judged(result)
        return result

    async def internal(
        self, argv: Sequence[str], *, stdin: bytes | None = None, keep_bytes: int = 1 << 16, timeout_s: float = 300.0
    ) -> ExecResult:
        return await self._run(
            argv, stdin=stdin, env=None, user=self._user, timeout_s=timeout_s, keep_bytes=keep_bytes,
            limit_bytes=4 * keep_bytes + (1 << 20),
        )  # fmt: skip

    async def _run(
        self, argv: Sequence[str], *, stdin: bytes | None, env: Mapping[str, str] | None, user: str, timeout_s: float,
        keep_bytes: int, limit_bytes: int,
    ) -> ExecResult:  # fmt: skip
        if self._stopping is not None:
            raise SandboxLost(f"sandbox {self.id} is gone: it was stopped")
        mark = f"{MARK}={self.id}.{next(self._marks)}"
        variables = [f"{name}={value}" for name, value in {**self._environment, **(env or {})}.items()]
        body = {
            "AttachStdin": stdin is not None, "AttachStdout": True, "AttachStderr": True, "Cmd": list(argv), "User": user,
            "Env": [*variables, mark],
        }  # fmt: skip
        started = time.monotonic()
        try:
            created = await self._engine.call("POST", f"/containers/{self.id}/exec", body)
            stream = await self._engine.exec_stream(created["Id"])
        except EngineError as error:
            raise self._lost(error) from error
        output = _Output(keep_bytes, limit_bytes)
        reading = asyncio.ensure_future(output.read(stream))
        feeding = asyncio.ensure_future(stream.feed(stdin)) if stdin is not None else None
        ended = asyncio.ensure_future(self._ended(created["Id"], reading, output))
        forced: ExecOutcome | None = None
        try:
            watched: list[asyncio.Future[Any]] = [ended, output.overflow]
            await asyncio.wait(watched, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                forced = "output_limit" if output.overflow.done() else "timeout"
                await self._end(mark, user)
                await asyncio.wait([ended], timeout=10)
            code = ended.result() if ended.done() else KILLED
        except asyncio.CancelledError:
            await asyncio.shield(self._end(mark, user))
            raise
        finally:
            for task in (reading, feeding, ended, output.overflow):
                if task is not None:
                    task.cancel()
            stream.close()
        if code is None:
            raise SandboxLost(f"sandbox {self.id} is gone: it was removed while a command ran")
        return ExecResult(
            outcome=forced or "exited",
            exit_code=KILLED if forced else code,
            stdout=b"" if output.refused else bytes(output.kept[1]),
            stderr=bytes(output.kept[1] if output.refused else output.kept[2]),
            duration_s=time.monotonic() - started,
            truncated=output.truncated,
        )

    async def _ended(self, exec_id: str, reading: "asyncio.Future[None]", output: "_Output") -> int | None:
        """The exit code, as soon as the command itself has ended; None where the container went with it.

        The output usually ends with the command. A child in the background may hold it open: then the daemon is asked.
        """
        pause = 0.1
        while True:
            await asyncio.wait([reading], timeout=pause)
            pause = min(pause * 1.5, 1.0)
            try:
                state = await self._engine.call("GET", f"/exec/{exec_id}/json")
            except EngineError:
                return None
            if not state["Running"] and state["ExitCode"] is not None:
                await asyncio.wait([reading], timeout=AFTER_END_S)
                # What the daemon says of a command that it could not start comes as if the command had written it.
                output.refused = not state["Pid"]
                return int(state["ExitCode"])
            if reading.done():
                pause = min(pause, 0.02)

    async def _end(self, mark: str, user: str) -> None:
        """SIGKILL to all that carries the mark, by its own user: without capabilities nobody else may see it."""
        # A sandbox that is full of processes has no room for the one that ends them.
        await self._limit_processes(self._processes + SPARE)
        with contextlib.suppress(EngineError, SandboxError):
            body = {"Cmd": ["/bin/sh", "-c", KILL, "sh", mark], "User": user, "AttachStdout": True}
            created = await self._engine.call("POST", f"/containers/{self.id}/exec", body)
            stream = await self._engine.exec_stream(created["Id"])
            async for _ in stream.frames():
                pass
            stream.close()
        await self._limit_processes(self._processes)

    async def _limit_processes(self, count: int) -> None:
        # Not every runtime can change it (gVisor cannot).
        with contextlib.suppress(EngineError, SandboxError):
            await self._engine.call("POST", f"/containers/{self.id}/update", {"PidsLimit": count})

    async def _judged(self, result: ExecResult) -> ExecResult:
        """Whether a command that failed ran out of memory, was killed, or was alone in failing."""
        count = await self.internal(["/bin/sh", "-c", OOM_COUNT])
        if result.exit_code in (KILLED, RUNTIME_LOST) and not count.stdout:
            await self._confirm()
        kills = int(count.stdout.split()[-1]) if count.ok and count.stdout.split() else self._oom_kills
        oom, self._oom_kills = kills > self._oom_kills, kills
        outcome: ExecOutcome = "oom" if oom else "killed" if result.exit_code == KILLED else "exited"
        return ExecResult(outcome, result.exit_code, result.stdout, result.stderr, result.duration_s, result.truncated)

    async def _confirm(self) -> None:
        """Raises SandboxLost where a command died because its container did, which the daemon notices a moment later."""
        for _ in range(CONFIRMATIONS):
            try:
                state = (await self._engine.call("GET", f"/containers/{self.id}/json"))["State"]
            except EngineError as error:
                raise self._lost(error) from error
            if not state["Running"]:
                raise SandboxLost(f"sandbox {self.id} is gone: its container ended", oom=bool(state["OOMKilled"]))
            await asyncio.sleep(0.1)

    def _lost(self, error: EngineError) -> Exception:
        # While a container is being removed, Debian's daemon says so with a status of its own failures.
        if error.status in (404, 409) or "is not running" in str(error):
            return SandboxLost(f"sandbox {self.id} is gone: {error}", cause=error)
        return SandboxError(f"the Docker daemon refused a command: {error}", maybe_ran=False, cause=error)

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._removed())
        await asyncio.shield(self._stopping)

    def reach(self, gateway: asyncio.Server) -> None:
        """Commands find the model gateway at this server from now on; it ends with the sandbox."""
        self._gateway = gateway
        self._environment["GYMFLOW_GATEWAY"] = f"http://127.0.0.1:{GATEWAY_PORT}"

    async def _removed(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
        await remove(self._engine, self.id)


class _Output:
    """Both streams, kept as far as wanted."""

    def __init__(self, keep_bytes: int, limit_bytes: int) -> None:
        self.kept = {1: bytearray(), 2: bytearray()}
        self.truncated = False
        self.refused = False
        self.overflow: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keep_bytes = keep_bytes
        self._left = limit_bytes

    async def read(self, stream: ExecStream) -> None:
        async for number, block in stream.frames():
            kept = self.kept[2 if number == 2 else 1]
            room = self._keep_bytes - len(kept)
            kept += block[:room] if len(block) > room else block
            self.truncated = self.truncated or len(block) > room
            self._left -= len(block)
            if self._left < 0 and not self.overflow.done():
                self.overflow.set_result(None)


def user_of(spec: SandboxSpec) -> str:
    """The user as Docker names it."""
    return AGENT if spec.user in (None, "agent") else str(spec.user)


async def remove(engine: Engine, name: str) -> None:
    """Remove a container with all that runs in it; one that is not there is removed already."""
    for _ in range(100):
        try:
            await engine.call("DELETE", f"/containers/{name}", query={"force": "true", "v": "true"})
            return
        except EngineError as error:
            if error.status == 404:
                return
            if error.status != 409:  # 409: its removal is in progress
                raise SandboxError(f"could not remove container {name}: {error}", cause=error) from error
        await asyncio.sleep(0.1)
