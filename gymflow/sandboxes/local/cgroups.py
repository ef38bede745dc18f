"""Control groups of local sandboxes, version 1 and 2: limits, usage, out-of-memory counts, and the one sure way to end a
whole tree of processes.

Groups are named after the process that owns them, so that what a killed run left behind is found by name alone.
"""

import asyncio
import contextlib
import os
import re
import signal
import time
from abc import ABC, abstractmethod
from functools import lru_cache
from pathlib import Path

from gymflow.sandboxes.interface import Capability
from gymflow.sandboxes.labels import start_time

_CAPABILITIES = {
    "cpu": Capability.CPU_LIMIT,
    "memory": Capability.OOM_REPORT,
    "pids": Capability.PROCESS_LIMIT,
}
CPU_PERIOD_US = 100_000
ROOT = Path("/sys/fs/cgroup")


class CgroupTree(ABC):
    """Where this process may make groups. `controllers`: what can be limited there, of memory, pids, cpu."""

    controllers: frozenset[str]

    @abstractmethod
    def create(
        self, name: str, *, cpus: float | None = None, memory_mib: int | None = None, processes: int | None = None
    ) -> "Cgroup":
        """A group with its limits set."""

    @abstractmethod
    def folders(self) -> list[Path]:
        """The folders in which groups of this and other owners lie."""


class Cgroup(ABC):
    """The group of one sandbox; `child` makes one inside it for a single command."""

    folders: list[Path]

    @property
    def members(self) -> list[Path]:
        """The folders that together know every process in the group."""
        return self.folders

    @property
    def join(self) -> list[str]:
        """Files that a process writes 0 to in order to move here."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    @abstractmethod
    def child(self, name: str) -> "Cgroup":
        """A group inside this one, under its limits."""

    @abstractmethod
    def oom_kills(self) -> int:
        """How many processes the memory limit has killed here."""

    @abstractmethod
    def cpu_s(self) -> float | None:
        """CPU seconds used here so far."""

    @abstractmethod
    def peak_memory_bytes(self) -> int | None:
        """Most memory in use here at one time."""

    def kill(self) -> bool:
        """SIGKILL to every process here and below; True where there was none."""
        empty = True
        for folder in self.members:
            for top, _, _ in os.walk(folder):
                for pid in _members(top):
                    empty = False
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        return empty

    async def kill_all(self, *, within_s: float = 10.0) -> None:
        """Kill until nothing is left: a process may fork while it is being killed."""
        deadline = time.monotonic() + within_s
        empty = self.kill()
        while not empty and time.monotonic() < deadline:
            await asyncio.sleep(0.002)
            empty = self.kill()

    async def remove(self, *, within_s: float = 10.0) -> None:
        """Kill what is left and remove the group."""
        deadline = time.monotonic() + within_s
        pause = 0.001
        while not self.discarded() and time.monotonic() < deadline:
            self.kill()
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.02)

    def discarded(self) -> bool:
        """Remove the group if no process is in it; False where one is."""
        for folder in self.folders:
            for top, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(top)  # noqa: PTH106 — on the way of every command
        return not any(folder.exists() for folder in self.folders)


class TreeV1(CgroupTree):
    """Version 1: one hierarchy per controller. The first of `bases` is the one in which commands get a child group."""

    def __init__(self, bases: dict[str, Path]) -> None:
        self.bases = bases
        self.controllers = frozenset(bases) & {"memory", "pids", "cpu"}

    def create(
        self, name: str, *, cpus: float | None = None, memory_mib: int | None = None, processes: int | None = None
    ) -> "Cgroup":
        group = GroupV1({controller: base / name for controller, base in self.bases.items()})
        for folder in group.folders:
            folder.mkdir(exist_ok=True)
        if memory_mib is not None:
            (group.by["memory"] / "memory.limit_in_bytes").write_text(str(memory_mib << 20))
            swap = group.by["memory"] / "memory.memsw.limit_in_bytes"
            if swap.exists():
                swap.write_text(str(memory_mib << 20))
        if processes is not None:
            (group.by["pids"] / "pids.max").write_text(str(processes))
        if cpus is not None:
            (group.by["cpu"] / "cpu.cfs_period_us").write_text(str(CPU_PERIOD_US))
            (group.by["cpu"] / "cpu.cfs_quota_us").write_text(str(max(1000, int(cpus * CPU_PERIOD_US))))
        return group

    def folders(self) -> list[Path]:
        return list(self.bases.values())


class GroupV1(Cgroup):
    """One folder per controller."""

    def __init__(self, by: dict[str, Path]) -> None:
        self.by = by
        self.folders = sorted(set(by.values()))

    @property
    def members(self) -> list[Path]:
        return [self.by["pids"]] if "pids" in self.by else self.folders

    def child(self, name: str) -> "Cgroup":
        # `cpu` and `cpuacct` are often one hierarchy, in which a process can be in one group only.
        own = {folder for c, folder in self.by.items() if c in ("pids", "cpuacct")}
        nested = {c: folder / name for c, folder in self.by.items() if folder in own}
        for folder in nested.values():
            folder.mkdir(exist_ok=True)
        return ChildV1(nested, self)

    def oom_kills(self) -> int:
        return _field(self.by["memory"] / "memory.oom_control", "oom_kill") if "memory" in self.by else 0

    def cpu_s(self) -> float | None:
        return _number(self.by["cpuacct"] / "cpuacct.usage", 1e-9) if "cpuacct" in self.by else None

    def peak_memory_bytes(self) -> int | None:
        peak = _number(self.by["memory"] / "memory.max_usage_in_bytes") if "memory" in self.by else None
        return None if peak is None else int(peak)


class ChildV1(GroupV1):
    """A command's own groups for processes and CPU time; the rest it shares with its sandbox."""

    def __init__(self, by: dict[str, Path], parent: GroupV1) -> None:
        super().__init__(by)
        self.parent = parent

    @property
    def join(self) -> list[str]:
        return [str({**self.parent.by, **self.by}[c] / "cgroup.procs") for c in self.parent.by]

    def oom_kills(self) -> int:
        return self.parent.oom_kills()

    def peak_memory_bytes(self) -> int | None:
        return self.parent.peak_memory_bytes()


class TreeV2(CgroupTree):
    """Version 2: one hierarchy. A group with limits holds no process itself, its children do."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.controllers = frozenset(_words(base / "cgroup.subtree_control")) & {"memory", "pids", "cpu"}

    def create(
        self, name: str, *, cpus: float | None = None, memory_mib: int | None = None, processes: int | None = None
    ) -> "Cgroup":
        folder = self.base / name
        folder.mkdir(exist_ok=True)
        if self.controllers:
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in sorted(self.controllers)))
        if memory_mib is not None:
            (folder / "memory.max").write_text(str(memory_mib << 20))
            swap = folder / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
        if processes is not None:
            (folder / "pids.max").write_text(str(processes))
        if cpus is not None:
            (folder / "cpu.max").write_text(f"{max(1000, int(cpus * CPU_PERIOD_US))} {CPU_PERIOD_US}")
        (folder / "init").mkdir(exist_ok=True)
        return GroupV2(folder, folder / "init")

    def folders(self) -> list[Path]:
        return [self.base]


class GroupV2(Cgroup):
    """A folder; processes live in a leaf below it."""

    def __init__(self, folder: Path, leaf: Path) -> None:
        self.folders = [folder]
        self.leaf = leaf

    @property
    def join(self) -> list[str]:
        return [str(self.leaf / "cgroup.procs")]

    def child(self, name: str) -> "Cgroup":
        folder = self.folders[0] / name
        folder.mkdir()
        return GroupV2(folder, folder)

    def kill(self) -> bool:
        switch = self.folders[0] / "cgroup.kill"
        if not switch.exists():
            return super().kill()
        with contextlib.suppress(OSError):
            if not _field(self.folders[0] / "cgroup.events", "populated"):
                return True
            switch.write_text("1")
        return not self.folders[0].exists()

    def oom_kills(self) -> int:
        return _field(self.folders[0] / "memory.events", "oom_kill")

    def cpu_s(self) -> float | None:
        used = _field(self.folders[0] / "cpu.stat", "usage_usec", absent=-1)
        return None if used < 0 else used / 1e6

    def peak_memory_bytes(self) -> int | None:
        peak = _number(self.folders[0] / "memory.peak")
        return None if peak is None else int(peak)


@lru_cache(maxsize=1)
def detect() -> CgroupTree | None:
    """Where this process may make groups for sandboxes; None where it may not, and limits have to be rlimits."""
    own = _own_groups(Path("/proc/self/cgroup").read_text()) if Path("/proc/self/cgroup").exists() else {}
    if (ROOT / "cgroup.controllers").exists():
        return _detect_v2(own.get("", "/"))
    bases: dict[str, Path] = {}
    for controller in ("pids", "cpuacct", "memory", "cpu"):
        if controller in own and (
            base := _usable((ROOT / controller / own[controller].lstrip("/")).resolve() / "gymflow")
        ):
            bases[controller] = base
    return TreeV1(bases) if "pids" in bases else None


def _detect_v2(own: str) -> CgroupTree | None:
    """The nearest group above this process in which a group can be made and a process moved into it."""
    at = ROOT / own.lstrip("/")
    while at == ROOT or ROOT in at.parents:
        wanted = frozenset(_words(at / "cgroup.subtree_control")) & {"memory", "pids", "cpu"}
        if (at == ROOT or "pids" in wanted) and (base := _usable(at / "gymflow")):
            offered = frozenset(_words(base / "cgroup.controllers")) & {"memory", "pids", "cpu"}
            with contextlib.suppress(OSError):
                (base / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in sorted(offered)))
            return TreeV2(base)
        if at == ROOT:
            break
        at = at.parent
    return None


def _usable(base: Path) -> Path | None:
    probe = base / f"probe-{os.getpid()}"
    try:
        base.mkdir(exist_ok=True)
        probe.mkdir()
        try:
            (probe / "cgroup.procs").open("w").close()
            return base
        finally:
            probe.rmdir()
    except OSError:
        return None


def capabilities() -> Capability:
    """What a provider can do with the groups that this process may make."""
    tree = detect()
    found = Capability.NONE if tree is None else Capability.WALL_LIMIT
    for controller, capability in _CAPABILITIES.items():
        if tree is not None and controller in tree.controllers:
            found |= capability
    return found


def group_name(sequence: str) -> str:
    """A group's name: owner's pid and start time, and what tells its groups apart."""
    return f"p{os.getpid()}-t{start_time(os.getpid())}-{sequence}"


def orphans(tree: CgroupTree) -> list[Path]:
    """Groups whose owner has ended."""
    return [folder for base in tree.folders() if base.is_dir() for folder in base.iterdir() if _is_orphan(folder)]


def _is_orphan(folder: Path) -> bool:
    named = re.fullmatch(r"p(\d+)-t(\d+)-.*", folder.name)
    return named is not None and folder.is_dir() and start_time(int(named[1])) != int(named[2])


def existing(folders: list[Path]) -> Cgroup:
    """Groups of another owner, to be ended and removed."""
    return GroupV1({str(folder): folder for folder in folders})


def _own_groups(text: str) -> dict[str, str]:
    own = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    return own


def _members(folder: str) -> list[int]:
    try:
        with open(f"{folder}/cgroup.procs", "rb") as procs:  # noqa: PTH123 — on the way of every command
            return [int(pid) for pid in procs.read().split()]
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _field(path: Path, name: str, *, absent: int = 0) -> int:
    words = _words(path)
    return int(words[words.index(name) + 1]) if name in words else absent


def _number(path: Path, unit: float = 1) -> float | None:
    words = _words(path)
    return float(words[0]) * unit if words and words[0].isdigit() else None
