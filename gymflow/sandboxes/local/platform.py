"""What this machine can isolate with, found out by trying."""

import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache

PROBE_S = 20
UID_BASE = 0x7000_0000
"""Above every range that distributions give to users, containers and services."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A bubblewrap that works here; `options`: the long options that it understands."""

    path: str
    options: frozenset[str]


@lru_cache(maxsize=1)
def bubblewrap() -> Bubblewrap | str:
    """The bubblewrap of this machine, or why sandboxes cannot be isolated with namespaces here."""
    if not sys.platform.startswith("linux"):
        return f"namespaces need Linux, this is {sys.platform}"
    path = shutil.which("bwrap")
    if path is None:
        return "bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)"
    shown = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=PROBE_S)
    options = frozenset(word for word in (shown.stdout + shown.stderr).split() if word.startswith("--"))
    if missing := {"--size", "--perms", "--json-status-fd", "--as-pid-1"} - options:
        return f"{path} is too old: it lacks {', '.join(sorted(missing))} (0.6 has them)"
    uid, gid = host_identity()
    tried = subprocess.run(
        [path, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--ro-bind", "/", "/", "--proc", "/proc",
         *(["--disable-userns"] if "--disable-userns" in options else []), "true"],
        capture_output=True, text=True, timeout=PROBE_S,
        user=uid, group=gid, extra_groups=None if uid is None else [],
    )  # fmt: skip
    if tried.returncode:
        return f"this kernel does not let an ordinary user make namespaces: {tried.stderr.strip()[:200]}"
    return Bubblewrap(path, options)


def host_identity() -> tuple[int | None, int | None]:
    """User and group under which a sandbox runs, seen from this machine: one of its own where we may choose."""
    if os.geteuid() != 0:
        return None, None
    uid = UID_BASE + random.SystemRandom().randrange(1 << 16)
    return uid, uid


@lru_cache(maxsize=1)
def landlock_abi() -> int:
    """Version of Landlock in this kernel; 0: none."""
    if not sys.platform.startswith("linux"):
        return 0
    import ctypes

    return max(0, int(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)))
