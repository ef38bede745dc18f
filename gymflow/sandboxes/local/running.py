"""A command on its way: started, read, bounded in time and output, ended with its whole tree where it must be."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from gymflow.contracts.sandbox import ExecOutcome
from gymflow.sandboxes.errors import SandboxError, SandboxLost
from gymflow.sandboxes.interface import ExecResult, Usage
from gymflow.sandboxes.local.cgroups import Cgroup
from gymflow.sandboxes.local.output import Stream
from gymflow.sandboxes.local.spawner import Child, Exit, Spawner

KILLED = 137
NOT_FOUND, NOT_RUNNABLE = 127, 126


class Running:
    """One started child with its output."""

    def __init__(self, keep_bytes: int, limit_bytes: int, group: Cgroup | None) -> None:
        self.started = time.monotonic()
        self.group = group
        self.child: Child | None = None
        self.end_tree: Callable[[], Awaitable[None]] | None = None
        self._left = limit_bytes
        self._overflow = asyncio.Event()
        self.stdout = Stream(keep_bytes, self._count)
        self.stderr = Stream(keep_bytes, self._count)
        self._oom_kills = group.oom_kills() if group else 0

    def _count(self, written: int) -> None:
        self._left -= written
        if self._left < 0:
            self._overflow.set()

    async def result(self, timeout_s: float) -> ExecResult:
        """Wait for the end, or bring it about: after `timeout_s` seconds, or when too much is written."""
        assert self.child is not None
        overflow: asyncio.Future[Any] = asyncio.ensure_future(self._overflow.wait())
        left = timeout_s - (time.monotonic() - self.started)
        try:
            await asyncio.wait(
                [self.child.exited, overflow], timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            overflow.cancel()
        forced: ExecOutcome | None = None
        if not self.child.exited.done():
            forced = "output_limit" if self._overflow.is_set() else "timeout"
            await self.end()
        end = await self.child.exited
        return self.outcome(end, forced)

    async def ended(self, within_s: float) -> bool:
        """Whether it ends by itself within that time."""
        assert self.child is not None
        return bool((await asyncio.wait({self.child.exited}, timeout=within_s))[0])

    async def end(self) -> None:
        """SIGKILL to the whole tree."""
        assert self.child is not None
        if self.group is not None:
            await self.group.kill_all()
        elif self.end_tree is not None:
            await self.end_tree()
        self.child.kill()

    def outcome(self, end: Exit, forced: ExecOutcome | None = None) -> ExecResult:
        """The result of a child that ended, by itself or because we `forced` it."""
        duration = time.monotonic() - self.started
        stdout, stderr = self.stdout.finish(), self.stderr.finish()
        code, note = _exit_code(end)
        cpu = self.group.cpu_s() if self.group else None
        peak = self.group.peak_memory_bytes() if self.group else None
        oom = self.group is not None and code != 0 and self.group.oom_kills() > self._oom_kills
        return ExecResult(
            outcome=forced or ("oom" if oom else "killed" if code == KILLED else "exited"),
            exit_code=KILLED if forced else code,
            stdout=stdout,
            stderr=stderr + note,
            duration_s=duration,
            truncated=self.stdout.truncated or self.stderr.truncated,
            usage=Usage(end.cpu_s if cpu is None else cpu, peak or end.peak_memory_bytes or None),
        )

    def close(self) -> None:
        """Release the pipes."""
        self.stdout.finish()
        self.stderr.finish()


@contextlib.asynccontextmanager
async def launched(
    spawner: Spawner,
    request: Mapping[str, Any],
    *,
    stdin: bytes | None,
    keep_bytes: int,
    limit_bytes: int,
    group: Cgroup | None,
    descriptors: Mapping[int, int] | None = None,
    end_tree: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[Running]:
    """Start a child; leaving the block while it runs ends its tree."""
    running = Running(keep_bytes, limit_bytes, group)
    running.end_tree = end_tree
    try:
        source = _input(stdin)
        try:
            running.child = spawner.spawn(
                request, {0: source, 1: running.stdout.write_fd, 2: running.stderr.write_fd, **(descriptors or {})}
            )
        finally:
            os.close(source)
            running.stdout.close_writer()
            running.stderr.close_writer()
        yield running
    finally:
        if running.child is not None and not running.child.exited.done():
            await asyncio.shield(running.end())
        running.close()


def _input(stdin: bytes | None) -> int:
    """A descriptor to read the input from: a memory file, so that nobody has to feed a pipe."""
    if stdin is None:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("stdin")
    view = memoryview(stdin)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _exit_code(end: Exit) -> tuple[int, bytes]:
    """The code, and what to say on stderr where the program did not begin."""
    if end.error is None:
        return end.exit_code, b""
    reason = os.strerror(end.errno)
    match end.error:
        case "exec":
            return (NOT_FOUND if end.errno == 2 else NOT_RUNNABLE), f"cannot run the command: {reason}\n".encode()
        case "cwd":
            return NOT_RUNNABLE, f"cannot change to the working directory: {reason}\n".encode()
        case "fork":
            return NOT_RUNNABLE, f"cannot start a process: {reason}\n".encode()
        case "enter" | "cgroup":
            raise SandboxLost(f"the sandbox is gone ({reason})")
        case step:
            raise SandboxError(f"could not start a command: {step}: {reason}", maybe_ran=False)
