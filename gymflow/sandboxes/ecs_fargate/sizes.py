"""Fargate's task sizes: which memory goes with which CPU.

https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html#fargate-tasks-size
"""

from gymflow.sandboxes.errors import SandboxUnsupported

GIB = 1024
MEMORY_MIB: dict[int, tuple[int, ...]] = {
    256: (512, 1 * GIB, 2 * GIB),
    512: tuple(range(1 * GIB, 4 * GIB + 1, GIB)),
    1024: tuple(range(2 * GIB, 8 * GIB + 1, GIB)),
    2048: tuple(range(4 * GIB, 16 * GIB + 1, GIB)),
    4096: tuple(range(8 * GIB, 30 * GIB + 1, GIB)),
    8192: tuple(range(16 * GIB, 60 * GIB + 1, 4 * GIB)),
    16384: tuple(range(32 * GIB, 120 * GIB + 1, 8 * GIB)),
}
"""CPU units (1024 a core) -> memory of a task."""
DEFAULT_CPU = 1024


def size(cpus: float | None, memory_mib: int | None) -> tuple[int, int]:
    """CPU units and MiB of the smallest task with these. Raises SandboxUnsupported where there is none.

    CPU time can only be limited by the task's size, so it has to be one of them; memory also by the container, so it may be less.
    """
    if cpus is not None and cpus * 1024 not in MEMORY_MIB:
        sizes = ", ".join(f"{units / 1024:g}" for units in MEMORY_MIB)
        raise SandboxUnsupported(f"limits.cpus={cpus:g}: Fargate has {sizes}")
    units = [int(cpus * 1024)] if cpus is not None else [one for one in MEMORY_MIB if one >= DEFAULT_CPU]
    for unit in units:
        for mib in MEMORY_MIB[unit]:
            if mib >= (memory_mib or 0):
                return unit, mib
    most = MEMORY_MIB[units[-1]][-1]
    raise SandboxUnsupported(
        f"limits.memory_mib={memory_mib}: Fargate has at most {most} with {units[-1] / 1024:g} cores"
    )
