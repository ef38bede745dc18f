"""What a local sandbox sees: a read-only system, an own /tmp, /home and workdir in memory, and nothing else of this machine.

What can be written lies in two memory file systems, `/` and /dev/shm, whose sizes together are the disk's: nothing is left on a disk.
"""

import os
import re
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import Mount
from gymflow.sandboxes.local import seccomp
from gymflow.sandboxes.local.limits import Bounds

SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr")
CONFIGURATION = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ca-certificates")
OWN = frozenset(
    {"dev", "proc", "sys", "run", "tmp", "home", "root", "work", "mnt", "media", "boot", "lost+found", "old_root"}
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VENV = "/opt/venv"
MAX_UID = (1 << 31) - 1
SHARED_BYTES = 64 << 20
"""Of the disk at most this much, and at most a quarter of it, is /dev/shm."""
HIDDEN = ("gymflow", "cli", "flows", "tasks")
"""Packages of an installed gymflow: they hold the hidden tests and answers of the shipped environments."""


@dataclass
class Arguments:
    """bubblewrap's arguments and the descriptors that they refer to."""

    options: frozenset[str] = frozenset()
    words: list[str] = field(default_factory=list)
    descriptors: dict[int, int] = field(default_factory=dict)
    staged: list[tuple[str, str]] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)

    def add(self, *words: str) -> None:
        self.words.extend(words)

    def descriptor(self, fd: int) -> str:
        """The number under which the child has this descriptor."""
        number = 3 + len(self.descriptors)
        self.descriptors[number] = fd
        return str(number)

    def data(self, content: bytes) -> str:
        """A descriptor to read this content from."""
        fd = os.memfd_create("data")
        self.stack.callback(os.close, fd)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return self.descriptor(fd)

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """A file that the sandbox starts with and owns."""
        self.add("--perms", f"{mode:04o}", "--file", self.data(content), path)

    def read_only(self, source: Path, target: str) -> None:
        """A file or folder of this machine."""
        self.add("--ro-bind", self.shown(source), target)

    def shown(self, source: Path) -> str:
        """A path under which the sandbox's user can come to a file or folder of this machine: its own, or another one at
        which the spawner shows it."""
        if os.geteuid() != 0 or _reachable(source):
            return str(source)
        staged = f"{stage_folder()}/{len(self.staged)}"
        self.staged.append((str(source), staged))
        return staged

    def packed(self) -> str:
        """All words so far behind one descriptor: no process list shows them."""
        return self.data(b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in self.words))


@lru_cache(maxsize=1)
def stage_folder() -> str:
    """Where the spawner shows what lies out of reach; nothing is ever written to it."""
    folder = Path(tempfile.gettempdir(), "gymflow-stage")
    folder.mkdir(mode=0o755, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise SandboxUnavailable(f"{folder} belongs to someone else; remove it")
    return str(folder)


@lru_cache(maxsize=256)
def _reachable(path: Path) -> bool:
    """Whether any user may come to this path."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)


def identity(user: str | None) -> tuple[int, str, str]:
    """Number, name and home of the user inside. Raises SandboxUnsupported for one that there cannot be."""
    if user is None or user == "agent":
        return 1000, "agent", "/home/agent"
    if user in ("root", "0"):
        return 0, "root", "/root"
    if not re.fullmatch(r"[1-9][0-9]{0,9}", user, re.ASCII) or int(user) > MAX_UID:
        raise SandboxUnsupported(
            f"sandbox provider `local` has no user {user!r}; set `user` to agent, root or a number up to {MAX_UID}"
        )
    return int(user), f"user{user}", "/home/agent"


def refuse_read_only(spec: SandboxSpec, rootfs: Path | None) -> None:
    """Raises SandboxUnsupported where the workdir would lie in what nobody can write to."""
    top = f"/{spec.workdir.split('/')[1]}"
    seen = {target for _, target, _ in _system(rootfs)} | {"/proc", "/dev", "/sys"}
    if top in seen or any(spec.workdir == target or spec.workdir.startswith(f"{target}/") for target in seen):
        raise SandboxUnsupported(
            f"workdir: {spec.workdir} lies in {top}, which sandboxes of `local` cannot write to; choose another such as /work"
        )


def environment(spec: SandboxSpec) -> dict[str, str]:
    """What every command starts with. Nothing of this process's environment is in it; hashes and clock zone are fixed."""
    _, name, home = identity(spec.user)
    python = f"{VENV}/bin:{sys.base_prefix}/bin:" if spec.image in (None, "host") else ""
    return {
        "PATH": python + PATH,
        "HOME": home,
        "USER": name,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **spec.env,
    }


def compose(
    spec: SandboxSpec,
    *,
    rootfs: Path | None,
    mounts: Sequence[Mount],
    files: Mapping[str, bytes],
    options: frozenset[str],
) -> Arguments:
    """The arguments for a sandbox. `rootfs`: an unpacked image, None for this machine's system; `options`: what this
    bubblewrap understands."""
    arguments = Arguments(options)
    try:
        _namespaces(arguments, spec)
        _root(arguments, spec, rootfs)
        for mount in mounts:
            arguments.read_only(mount.source, mount.target)
        for path, content in files.items():
            arguments.file(path, content)
        arguments.add("--clearenv", "--chdir", spec.workdir)
        for name, value in environment(spec).items():
            arguments.add("--setenv", name, value)
    except BaseException:
        arguments.stack.close()
        raise
    return arguments


def _namespaces(arguments: Arguments, spec: SandboxSpec) -> None:
    uid, _, _ = identity(spec.user)
    arguments.add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if spec.network != "open":
        arguments.add("--unshare-net")
    if "--disable-userns" in arguments.options:
        arguments.add("--disable-userns")
    arguments.add("--uid", str(uid), "--gid", str(uid), "--hostname", "sandbox", "--cap-drop", "ALL")
    arguments.add("--die-with-parent", "--new-session")
    if spec.network != "open" and (code := seccomp.program()):
        arguments.add("--seccomp", arguments.data(code))


def _root(arguments: Arguments, spec: SandboxSpec, rootfs: Path | None) -> None:
    disk = Bounds.of(spec.limits).memory_disk_mib << 20
    shared = min(disk // 4, SHARED_BYTES)
    arguments.add("--size", str(disk - shared), "--tmpfs", "/")
    for source, target, link in _system(rootfs):
        if link is not None:
            arguments.add("--symlink", link, target)
        else:
            arguments.read_only(source, target)
    if rootfs is None:
        _interpreter(arguments)
    uid, name, home = identity(spec.user)
    if rootfs is None or not (rootfs / "etc/passwd").exists():
        users = f"{name}:x:{uid}:{uid}::{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
        arguments.file("/etc/passwd", users.encode())
        arguments.file("/etc/group", f"{name}:x:{uid}:\nnogroup:x:65534:\n".encode())
        arguments.file("/etc/hosts", b"127.0.0.1 localhost sandbox\n::1 localhost\n")
        arguments.file("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    if spec.network == "open" and Path("/etc/resolv.conf").exists():
        arguments.file("/etc/resolv.conf", Path("/etc/resolv.conf").read_bytes())
    # bubblewrap's /dev is a file system of its own, without a bound.
    arguments.add("--proc", "/proc", "--dev", "/dev", "--size", str(shared), "--perms", "1777", "--tmpfs", "/dev/shm")
    arguments.add("--remount-ro", "/dev")
    arguments.add("--perms", "1777", "--dir", "/tmp", "--dir", home, "--dir", spec.workdir, "--dir", "/run")


@lru_cache(maxsize=16)
def _system(rootfs: Path | None) -> tuple[tuple[Path, str, str | None], ...]:
    """What of a system is seen, read-only, as (source, target, text of a link): of an image everything but the folders that
    each sandbox has of its own."""
    if rootfs is not None:
        seen = [(source, f"/{source.name}") for source in sorted(rootfs.iterdir()) if source.name not in OWN]
    else:
        seen = [(Path("/", name), f"/{name}") for name in SYSTEM]
        seen += [(Path("/etc", name).resolve(), f"/etc/{name}") for name in CONFIGURATION]
    return tuple(
        (source, target, str(source.readlink()) if source.is_symlink() else None)
        for source, target in seen
        if source.exists()
    )


@lru_cache(maxsize=1)
def _python() -> tuple[Path, Path, tuple[str, ...]]:
    """The interpreter's base, where its packages lie, and which of those are not to be seen."""
    site = Path(sysconfig.get_path("purelib"))
    return Path(sys.base_prefix), site, tuple(name for name in HIDDEN if (site / name).is_dir())


def _interpreter(arguments: Arguments) -> None:
    """The Python that runs gymflow with the packages installed for it; a virtual environment is rebuilt under /opt/venv,
    since its own path may lie where the sandbox has something else."""
    base, site, hidden = _python()
    if not base.is_relative_to("/usr"):
        arguments.read_only(base, str(base))
    seen = str(site)
    if sys.prefix != sys.base_prefix:
        seen = f"{VENV}/lib/{site.parent.name}/site-packages"
        arguments.file(f"{VENV}/pyvenv.cfg", f"home = {base}/bin\ninclude-system-site-packages = false\n".encode())
        for name in ("python", "python3"):
            arguments.add("--symlink", f"{base}/bin/python3", f"{VENV}/bin/{name}")
        arguments.read_only(site, seen)
    for name in hidden:
        arguments.add("--tmpfs", f"{seen}/{name}", "--remount-ro", f"{seen}/{name}")
