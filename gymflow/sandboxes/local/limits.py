"""The limits of a local sandbox: by control group where this process may make one, else by resource limits."""

import resource
from dataclasses import dataclass

from gymflow.contracts.sandbox import SandboxLimits
from gymflow.sandboxes.local import cgroups

MEMORY_MIB = 2048
PROCESSES = 256
OWN_PROCESSES = 4
"""bubblewrap, the first process, and for a command the one that waits for it: they count in a control group, but not for who works there."""
OPEN_FILES = 4096


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds where a spec leaves it open: a sandbox always has an end."""

    cpus: float | None
    memory_mib: int
    processes: int
    disk_mib: int | None

    @classmethod
    def of(cls, limits: SandboxLimits) -> "Bounds":
        return cls(limits.cpus, limits.memory_mib or MEMORY_MIB, limits.processes or PROCESSES, limits.disk_mib)

    @property
    def memory_disk_mib(self) -> int:
        """The disk where it is memory. By default half of that, so that a full disk is a full disk and not out of memory."""
        return self.disk_mib or max(4, self.memory_mib // 2)

    def group(self, name: str) -> cgroups.Cgroup | None:
        """A control group with these limits, or None where rlimits have to do."""
        tree = cgroups.detect()
        if tree is None:
            return None
        return tree.create(
            cgroups.group_name(name),
            cpus=self.cpus,
            memory_mib=self.memory_mib if "memory" in tree.controllers else None,
            processes=self.processes + OWN_PROCESSES if "pids" in tree.controllers else None,
        )

    def rlimits(self) -> list[tuple[int, int]]:
        """Resource limits of each process. Without a memory group the address space is bounded instead."""
        tree = cgroups.detect()
        limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)]
        if self.disk_mib is not None:
            limits.append((resource.RLIMIT_FSIZE, self.disk_mib << 20))
        if tree is None or "memory" not in tree.controllers:
            limits.append((resource.RLIMIT_AS, self.memory_mib << 20))
        if tree is None or "pids" not in tree.controllers:
            limits.append((resource.RLIMIT_NPROC, self.processes + OWN_PROCESSES))
        return limits
