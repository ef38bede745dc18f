"""The one way out of a container without network: a loopback port inside, carried to the model gateway's socket from outside.

Nothing has to be in the image for it, and no path of this machine is mounted. It takes root on the daemon's own machine.
"""

import asyncio
import ctypes
import os
import socket
import threading
from pathlib import Path

from gymflow.sandboxes.errors import SandboxUnavailable
from gymflow.sandboxes.local.gateway import GATEWAY_PORT, serve_gateway

CLONE_NEWNET = 0x40000000


def can_enter(host: str) -> bool:
    """Whether this process may open sockets inside the containers of a daemon."""
    return host.startswith("unix://") and Path("/proc/self/ns/net").exists() and os.geteuid() == 0


async def open_gateway(container_id: str, pid: int, gateway: Path) -> asyncio.Server:
    """Serve `GATEWAY_PORT` inside a container whose first process has this pid; closing the server ends it.

    Raises SandboxUnavailable where that process is another machine's.
    """
    try:
        if container_id not in Path(f"/proc/{pid}/cgroup").read_text():
            raise FileNotFoundError(f"process {pid} is not the container's")
        listening = await asyncio.to_thread(_listen_inside, pid)
    except OSError as error:
        raise SandboxUnavailable(
            f"no way to the model gateway: the Docker daemon's containers are not processes of this machine ({error})",
            cause=error,
        ) from error
    return await serve_gateway(listening, gateway)


def _listen_inside(pid: int) -> socket.socket:
    """A socket of another network namespace. A thread enters it and ends: the namespace belongs to the thread alone."""
    made: list[socket.socket | OSError] = []

    def enter() -> None:
        try:
            with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(namespace.fileno(), CLONE_NEWNET):
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            listening = socket.socket()
            listening.bind(("127.0.0.1", GATEWAY_PORT))
            listening.listen(128)
            made.append(listening)
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=enter, name="gateway-of-a-container")
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]
