"""Work inside a container's namespaces from outside, where its processes are this machine's and we are root.

Nothing has to be in the image for it, and nothing of this machine is shown inside. A thread enters and ends: what it entered
belongs to the thread alone.
"""

import asyncio
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gymflow.sandboxes.errors import SandboxUnavailable

CLONE_FS = 0x200
NAMESPACES = {"net": 0x40000000, "mnt": 0x00020000}

libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


def can_enter(host: str) -> bool:
    """Whether this process may enter the containers of a daemon, as far as can be said before there is one."""
    return host.startswith("unix://") and Path("/proc/self/ns/net").exists() and os.geteuid() == 0


async def inside(container_id: str, pid: int, namespace: str, work: Callable[[], T]) -> T:
    """What some work comes to in a namespace (`net`, `mnt`) of the container whose first process has this pid.

    Raises SandboxUnavailable where that process is another machine's, or the work fails.
    """
    try:
        if container_id not in Path(f"/proc/{pid}/cgroup").read_text():
            raise FileNotFoundError(f"process {pid} is not the container's")
        return await asyncio.to_thread(_in_a_thread, pid, namespace, work)
    except OSError as error:
        raise SandboxUnavailable(f"the Docker daemon's containers cannot be entered from here: {error}", cause=error) from error  # fmt: skip


def _in_a_thread(pid: int, namespace: str, work: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[OSError] = []

    def enter() -> None:
        try:
            with Path(f"/proc/{pid}/ns/{namespace}").open("rb") as target:
                checked(libc.unshare(CLONE_FS))
                checked(libc.setns(target.fileno(), NAMESPACES[namespace]))
            results.append(work())
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=enter, name=f"inside-{pid}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def checked(result: int) -> None:
    """Raises OSError where a call of the C library failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
