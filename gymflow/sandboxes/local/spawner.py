"""The engine's side of `spawn_server.py`: one server per process, started when the first sandbox is."""

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymflow.sandboxes.errors import SandboxError

_SERVER = Path(__file__).with_name("spawn_server.py")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended. `error` names the step that failed before its program began, with its `errno`; `descriptor` is
    what a child handed back."""

    exit_code: int
    signal: int | None
    cpu_s: float
    peak_memory_bytes: int
    error: str | None = None
    errno: int = 0
    descriptor: int | None = None


class Spawner:
    """Starts processes by request. Safe to use from several event loops of one process."""

    _shared: "Spawner | None" = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A clean environment: what the server holds could be read from inside a sandbox.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_SERVER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"LANG": "C.UTF-8"},
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        self._socket = ours
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._pending: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[Exit]]] = {}
        self._alive = True
        threading.Thread(target=self._receive, name="gymflow-spawner", daemon=True).start()

    @classmethod
    def shared(cls) -> "Spawner":
        """This process's spawner; a forked child gets its own."""
        with cls._lock:
            current = cls._shared
            if current is None or not current._alive or current._owner != os.getpid():
                current = cls._shared = Spawner()
            return current

    def spawn(self, request: Mapping[str, Any], descriptors: Mapping[int, int]) -> "Child":
        """Start a child; `descriptors`: number in the child -> descriptor here (the caller closes its own)."""
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Exit] = loop.create_future()
        self._pending[number] = (loop, future)
        self._send({"op": "spawn", "id": number, "numbers": list(descriptors), **request}, list(descriptors.values()))
        return Child(self, number, future)

    async def hold(self, name: str, pid: int) -> None:
        """Keep hold of a sandbox's first process under a name, so that children can enter it."""
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Exit] = loop.create_future()
        self._pending[number] = (loop, future)
        self._send({"op": "hold", "id": number, "name": name, "pid": pid})
        if (result := await future).error:
            raise SandboxError(f"the sandbox's first process is gone ({os.strerror(result.errno)})")

    def kill(self, number: int) -> None:
        self._send({"op": "kill", "target": number})

    def track(
        self, name: str, *, cgroups: Sequence[str], files: Sequence[str] = (), folders: Sequence[str] = ()
    ) -> None:
        """What the server removes if this process ends without having released it."""
        self._send(
            {"op": "track", "name": name, "cgroups": list(cgroups), "files": list(files), "folders": list(folders)}
        )

    def discard(self, name: str) -> None:
        """Let the server remove what is tracked under a name, and forget it."""
        self._send({"op": "discard", "name": name})

    def release(self, name: str) -> None:
        """Forget a held and tracked name."""
        self._send({"op": "release", "name": name})

    def _send(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        body = os.memfd_create("request")
        try:
            os.write(body, json.dumps(request).encode())
            socket.send_fds(self._socket, [b"r"], [body, *descriptors])
        except OSError as error:
            raise SandboxError("the process that starts local sandboxes is gone", cause=error) from error
        finally:
            os.close(body)

    def _receive(self) -> None:
        while True:
            try:
                packet, opened, _, _ = socket.recv_fds(self._socket, 1 << 16, 1)
            except OSError:
                packet, opened = b"", []
            if not packet:
                break
            message = json.loads(packet)
            waiting = self._pending.pop(message["id"], None)
            if waiting:
                _resolve(*waiting, _exit_of(message, opened[0] if opened else None))
        self._alive = False
        self._process.wait()
        for loop, future in list(self._pending.values()):
            _resolve(loop, future, Exit(137, signal.SIGKILL, 0.0, 0, error="spawner", errno=0))


@dataclass(frozen=True, slots=True)
class Child:
    """A started child."""

    spawner: Spawner
    number: int
    exited: "asyncio.Future[Exit]"

    def kill(self) -> None:
        """SIGKILL to the child itself; not to its descendants."""
        self.spawner.kill(self.number)


def _exit_of(message: dict[str, Any], descriptor: int | None) -> Exit:
    if "error" in message:
        return Exit(125, None, 0.0, 0, error=message["error"], errno=message["errno"])
    status = message["status"]
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = 128 + number if number else os.WEXITSTATUS(status)
    return Exit(code, number, message.get("cpu", 0.0), message.get("rss", 0), descriptor=descriptor)


def _resolve(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Exit]", value: Exit) -> None:
    def deliver() -> None:
        if not future.done():
            future.set_result(value)

    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:  # the loop is closed: nobody waits any more
        pass
