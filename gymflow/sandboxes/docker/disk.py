"""A bound on what a container writes. Docker has one for few storage drivers, so that it is made here, as `local` has it: all that
can be written lies in one memory file system of that size, which counts as memory too; the rest is read-only."""

import os
from pathlib import Path

from gymflow.sandboxes.docker.inside import checked, inside, libc

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 0x1, 0x2, 0x4, 0x20, 0x1000
KERNELS = frozenset({"proc", "sysfs", "cgroup", "cgroup2", "mqueue", "devpts", "devtmpfs", "tmpfs"})
"""File systems that hold no files of a disk."""
PUBLIC = ("/tmp", "/var/tmp", "/dev/shm")


async def bound(container_id: str, pid: int, *, workdir: str, home: str, owner: tuple[int, int], mib: int) -> None:
    """Give a container that was just started one file system of `mib` for all that it writes. Raises SandboxUnavailable."""
    on_disk = [
        fields[4] for fields in map(str.split, Path(f"/proc/{pid}/mountinfo").read_text().splitlines())
        if fields[fields.index("-") + 1] not in KERNELS
    ]  # fmt: skip
    await inside(container_id, pid, "mnt", lambda: _arrange(on_disk, workdir, home, owner, mib))


def _arrange(on_disk: list[str], workdir: str, home: str, owner: tuple[int, int], mib: int) -> None:
    _mount("tmpfs", workdir, "tmpfs", MS_NOSUID | MS_NODEV, f"size={mib}m,mode=755")
    places = {workdir: "work", home: "home", **{path: path.strip("/").replace("/", "-") for path in PUBLIC}}
    for path, name in places.items():
        part = Path(workdir, name)
        part.mkdir()
        if path in PUBLIC:
            part.chmod(0o1777)
        else:
            os.chown(part, *owner)
    # The workdir is the last: it hides the file system's own root.
    for path, name in reversed(places.items()):
        if Path(path).is_dir():
            _mount(f"{workdir}/{name}", path, "", MS_BIND, "")
    for path in on_disk:
        _mount("", path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, "")


def _mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
    checked(libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None))
