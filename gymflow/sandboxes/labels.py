"""Labels on every sandbox: whose it is, and until when it may exist. With them orphans are found and removed, only those."""

import os
import signal
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PREFIX = "gymflow."
RUN, ROLLOUT, OWNER, EXPIRES = PREFIX + "run", PREFIX + "rollout", PREFIX + "owner", PREFIX + "expires"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, so named that another one with its pid is not mistaken for it. `started` is in clock ticks since boot."""

    host: str
    pid: int
    started: int

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        return cls(hostname(), os.getpid(), start_time(os.getpid()) or 0)

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """The reverse of `str`; None where it is not one."""
        host, _, rest = text.rpartition("_p")
        pid, _, started = rest.partition("_t")
        return cls(host, int(pid), int(started)) if host and pid.isdigit() and started.isdigit() else None

    def __str__(self) -> str:
        return f"{self.host}_p{self.pid}_t{self.started}"

    @property
    def alive(self) -> bool | None:
        """None: it runs on another machine, nothing can be said from here."""
        if self.host != hostname():
            return None
        return start_time(self.pid) == self.started


def owned(labels: Mapping[str, str] | None, *, wall_s: float | None) -> dict[str, str]:
    """The caller's labels with owner and, where its life is limited, expiry (Unix time, seconds)."""
    expires = {EXPIRES: str(int(time.time() + wall_s) + 1)} if wall_s else {}
    return {**(labels or {}), OWNER: str(Owner.current()), **expires}


def is_orphan(labels: Mapping[str, str], *, now: float | None = None) -> bool:
    """Whether the sandbox may go: its owner ended, or its time is over. One without our labels is never an orphan."""
    if OWNER not in labels:
        return False
    expires = labels.get(EXPIRES, "")
    if expires.isdigit() and int(expires) < (time.time() if now is None else now):
        return True
    owner = Owner.parse(labels[OWNER])
    return owner is not None and owner.alive is False


def matches(labels: Mapping[str, str], wanted: Mapping[str, str] | None) -> bool:
    """Whether all wanted labels are there with their values."""
    return all(labels.get(name) == value for name, value in (wanted or {}).items())


def new_id() -> str:
    """A sandbox id that is also a valid container, host and file name."""
    return f"gymflow-{uuid.uuid4().hex[:16]}"


@lru_cache(maxsize=1)
def hostname() -> str:
    """This machine, told apart from a rebooted one where the kernel says so; short enough for a label of 63 characters."""
    boot, name = Path("/proc/sys/kernel/random/boot_id"), socket.gethostname()[:32]
    return f"{name}-{boot.read_text()[:8]}" if boot.exists() else name


_EXITING = 0x4  # PF_EXITING, in the kernel's include/linux/sched.h
_KILLED = 1 << (signal.SIGKILL - 1)


def start_time(pid: int) -> int | None:
    """When a process of this machine started; None where there is none (or it is dead and not yet waited for)."""
    try:
        fields = _stat(pid)
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return 0
        return None if Path("/proc/self").exists() else 0
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_dying(pid: int) -> bool:
    """Whether a process is past saving: a namespace's first one stays until all others of it are reaped."""
    try:
        fields = _stat(pid)
    except OSError:
        return False
    return bool(int(fields[6]) & _EXITING or int(fields[28]) & _KILLED)


def _stat(pid: int) -> list[bytes]:
    """From the third field on, see proc(5)."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
