"""Starts what runs in local sandboxes: a small process with one thread, run as a script, standard library only.

Why a process of its own: only a process with one thread can fork and change namespaces safely; a fork of a small process
takes a millisecond; and when the process that it serves is killed, this one is left to clean up.

Requests arrive on a socket, whose descriptor is the argument, one packet each: the first descriptor passed is a memory file with JSON, the
rest are the child's. Answers are packets of JSON: `{"id", "error", "errno"}`, `{"id", "status", "cpu", "rss"}`.
"""

# Plain system calls: this code runs in forked children and in other namespaces.
# ruff: noqa: PTH102, PTH103, PTH105, PTH106, PTH108, PTH112, PTH114, PTH116, PTH118, PTH120, PTH123, PTH208
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import sys
import tarfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

MAX_FDS = 128
MAX_DEPTH = 256
"""As `archive.MAX_DEPTH`; below that nothing is kept."""
NAMESPACES = {"user": 0x10000000, "mnt": 0x00020000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000, "uts": 0x04000000, "cgroup": 0x02000000}  # fmt: skip
NS_GET_PARENT = 0xB702
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 24, 38, 47
SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING, KEYCTL_SETPERM, SESSION_KEYRING = 1, 5, -3
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x00020000, 4096, 16384, 1 << 18
LANDLOCK = {"create": 444, "add": 445, "restrict": 446}
LIBC = ctypes.CDLL(None, use_errno=True)


Request = dict[str, Any]


class Failed(Exception):
    """A step of a child failed before its program began."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step)
        self.step, self.number = step, number


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Names the step in which a system call failed."""
    try:
        yield
    except OSError as error:
        raise Failed(name, error.errno or errno.EIO) from error


def syscall(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def main() -> None:
    sys.dont_write_bytecode = True
    # A child that has entered a sandbox can import nothing any more, not even to warn.
    warnings.simplefilter("ignore")
    leave_keyring()
    control = socket.socket(fileno=int(sys.argv[1]))
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    server = Server(control)
    while True:
        pause = 0.01 if server.discarded else None
        readable, _, _ = select.select([control.fileno(), wake_read], [], [], pause)
        if wake_read in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_read, 4096)
            server.reap()
        server.discarded = [entry for entry in server.discarded if not all(cgroup_gone(f) for f in entry["cgroups"])]
        if control.fileno() in readable and not server.receive():
            break
    server.clean_up()


class Server:
    """Children by request, held sandboxes by name, and what has to go when the process we serve is gone."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.requests: dict[int, int] = {}
        self.held: dict[str, int] = {}
        self.cleanup: dict[str, Request] = {}
        self.discarded: list[Request] = []

    def receive(self) -> bool:
        """Handle one request; False when the other side is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self.control, 64, MAX_FDS)
        except ConnectionError:
            return False
        if not data:
            return False
        try:
            length = os.fstat(fds[0]).st_size
            request = json.loads(os.pread(fds[0], length, 0))
            self.handle(request, fds[1:])
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def handle(self, request: Request, fds: list[int]) -> None:
        match request["op"]:
            case "spawn":
                self.spawn(request, fds)
            case "kill":
                for pid, number in self.requests.items():
                    if number == request["target"]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
            case "hold":
                self.hold(request)
            case "track":
                self.cleanup[request["name"]] = request
            case "discard":
                entry = self.cleanup.pop(request["name"], None)
                self.discarded += [entry] if entry else []
            case "release":
                self.cleanup.pop(request["name"], None)
                fd = self.held.pop(request["name"], None)
                if fd is not None:
                    os.close(fd)

    def hold(self, request: Request) -> None:
        """Keep a descriptor on a sandbox's first process, so that its pid cannot come to mean another one."""
        try:
            self.held[request["name"]] = os.pidfd_open(request["pid"])
            self.send({"id": request["id"], "status": 0})
        except OSError as error:
            self.send({"id": request["id"], "error": "hold", "errno": error.errno})

    def spawn(self, request: Request, fds: list[int]) -> None:
        if request.get("enter") and request["enter"] not in self.held:
            self.send({"id": request["id"], "error": "enter", "errno": errno.ESRCH})
            return
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self.send({"id": request["id"], "error": "fork", "errno": error.errno})
            return
        if pid:
            self.requests[pid] = request["id"]
            return
        code = 70
        try:
            code = Child(self, request, fds, parent).run()
        except Failed as failed:
            self.send({"id": request["id"], "error": failed.step, "errno": failed.number})
        except BaseException as error:
            self.send({"id": request["id"], "error": f"{type(error).__name__}: {error}"[:500], "errno": errno.EIO})
        finally:
            os._exit(code)

    def reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self.requests.pop(pid, None)
            if number is not None:
                self.send(exit_message(number, status, usage))

    def send(self, message: Request, descriptors: list[int] | None = None) -> None:
        with contextlib.suppress(OSError):
            socket.send_fds(self.control, [json.dumps(message).encode()], descriptors or [])

    def clean_up(self) -> None:
        for pid in self.requests:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for entry in (*self.cleanup.values(), *self.discarded):
            for folder in entry["cgroups"]:
                remove_cgroup(folder)
            for path in entry["files"]:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            for path in entry["folders"]:
                shutil.rmtree(path, ignore_errors=True)


def exit_message(number: int, status: int, usage: Any) -> Request:
    return {"id": number, "status": status, "cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss * 1024}


def remove_cgroup(folder: str) -> None:
    """Kill what is in a control group and in those below it, then remove it."""
    deadline = time.monotonic() + 5
    while not cgroup_gone(folder) and time.monotonic() < deadline:
        time.sleep(0.002)


def cgroup_gone(folder: str) -> bool:
    """One try of that."""
    for top, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError), open(os.path.join(top, "cgroup.procs")) as members:
            for pid in members.read().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.rmdir(top)
    return not os.path.isdir(folder)


class Child:
    """What happens between fork and the program: in the child, in this order, so that each step still has the rights it
    needs."""

    def __init__(self, server: Server, request: Request, fds: list[int], parent: int) -> None:
        self.server, self.request, self.fds, self.parent = server, request, fds, parent

    def run(self) -> int:
        request = self.request
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        self.die_with_parent()
        with step("cgroup"):
            for group in request.get("join", ()):
                with open(group, "w") as procs:
                    procs.write("0")
        if request.get("stage"):
            with step("stage"):
                stage(request["stage"])
        held = self.server.held.get(request.get("enter") or "")
        with step("descriptors"):
            held, control = self.arrange_descriptors(held)
        self.server.control = control
        with step("limits"):
            self.set_limits()
        if held is not None:
            with step("enter"):
                self.enter(held)
            os.close(held)
        if request.get("seal"):
            with step("seal"):
                forbid_user_namespaces()
        if "landlock" in request:
            with step("landlock"):
                restrict(request["landlock"])
        with step("user"):
            self.become_user()
        self.die_with_parent()
        if request.get("enter") and "files" not in request:
            return self.supervise(control)
        return self.execute()

    def supervise(self, control: socket.socket) -> int:
        """A process that joins a pid namespace is not in it, its children are: fork once more and report on that one."""
        with step("fork"):
            pid = os.fork()
        if pid == 0:
            self.parent = 0  # seen from inside the namespace
            self.die_with_parent()
            self.execute()
        for fd in range(64):
            if fd != control.fileno():
                with contextlib.suppress(OSError):
                    os.close(fd)
        _, status, usage = os.wait4(pid, 0)
        self.server.send(exit_message(self.request["id"], status, usage))
        return 0

    def execute(self) -> int:
        request = self.request
        try:
            with step("privileges"):
                if request.get("drop", True):
                    drop_privileges()
                if request.get("seccomp"):
                    filter_calls(bytes.fromhex(request["seccomp"]))
            if "files" in request:
                opened = FILE_OPERATIONS[request["files"]["do"]](request["files"])
                self.server.send({"id": request["id"], "status": 0}, [] if opened is None else [opened.fileno()])
                return 0
            with step("cwd"):
                os.chdir(request["cwd"])
            # Python ignores SIGPIPE; a program must not inherit that.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            with step("exec"):
                os.execvpe(request["argv"][0], request["argv"], request["env"])
        except Failed as failed:
            self.server.send({"id": request["id"], "error": failed.step, "errno": failed.number})
            os._exit(70)
        except OSError as error:
            self.server.send({"id": request["id"], "error": "files", "errno": error.errno or errno.EIO})
            os._exit(70)

    def arrange_descriptors(self, held: int | None) -> tuple[int | None, socket.socket]:
        """The child's descriptors under the numbers that the request names; everything else closed."""
        wanted = self.request["numbers"]
        floor = max([*wanted, 63]) + 1
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, floor) for fd in self.fds]
        control = fcntl.fcntl(self.server.control.fileno(), fcntl.F_DUPFD_CLOEXEC, floor)
        if held is not None:
            held = fcntl.fcntl(held, fcntl.F_DUPFD_CLOEXEC, floor)
        top = max([*moved, control, held or 0]) + 1
        os.closerange(0, floor)
        for fd, number in zip(moved, wanted, strict=True):
            os.dup2(fd, number, inheritable=True)
            os.close(fd)
        os.closerange(top, 1 << 16)
        return held, socket.socket(fileno=control)

    def set_limits(self) -> None:
        for number, value in self.request.get("rlimits", ()):
            _, hard = resource.getrlimit(number)
            bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (bounded, bounded))

    def enter(self, held: int) -> None:
        """Join the namespaces of a sandbox's first process."""
        if os.geteuid() == 0:
            os.setgroups([])
        pid = pid_of(held)
        rest = sum(flag for name, flag in NAMESPACES.items() if name != "user" and not shared(pid, name))
        if os.geteuid() == 0:
            syscall(LIBC.setns(held, rest))
            syscall(LIBC.setns(held, NAMESPACES["user"]))
            return
        user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        parent = fcntl.ioctl(user, NS_GET_PARENT)
        if os.fstat(parent).st_ino != os.stat("/proc/self/ns/user").st_ino:
            syscall(LIBC.setns(parent, NAMESPACES["user"]))
            syscall(LIBC.setns(held, rest))
            syscall(LIBC.setns(user, NAMESPACES["user"]))
        else:
            syscall(LIBC.setns(held, rest | NAMESPACES["user"]))
        os.close(user)
        os.close(parent)

    def become_user(self) -> None:
        uid = self.request.get("uid")
        if uid is None:
            return
        gid = self.request["gid"]
        if not self.request.get("enter"):
            os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)

    def die_with_parent(self) -> None:
        syscall(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if self.parent and os.getppid() != self.parent:
            os._exit(70)


def stage(bindings: list[list[str]]) -> None:
    """Show files and folders, in this child's own view of the machine, at paths that the sandbox's user can reach."""
    syscall(LIBC.unshare(CLONE_NEWNS))
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("tmpfs", os.path.dirname(bindings[0][1]), "tmpfs", 0, "mode=0755")
    for source, target in bindings:
        if os.path.isdir(source):
            os.mkdir(target, 0o755)
        else:
            os.close(os.open(target, os.O_CREAT, 0o644))
        mount(source, target, "", MS_BIND | MS_REC)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    syscall(LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()))


def pid_of(pidfd: int) -> int:
    with open(f"/proc/self/fdinfo/{pidfd}") as info:
        for line in info:
            if line.startswith("Pid:"):
                pid = int(line.split()[1])
                if pid > 0:
                    return pid
    raise OSError(errno.ESRCH, "the sandbox is gone")


def shared(pid: int, namespace: str) -> bool:
    """Whether a process has this namespace of ours: joining that once more would need rights over the machine."""
    return os.stat(f"/proc/{pid}/ns/{namespace}").st_ino == os.stat(f"/proc/self/ns/{namespace}").st_ino


def forbid_user_namespaces() -> None:
    """No further user namespace in the one that was entered: whoever makes one has every capability in it."""
    setting = os.open("/proc/sys/user/max_user_namespaces", os.O_WRONLY | os.O_CLOEXEC)
    os.write(setting, b"0")
    os.close(setting)


def leave_keyring() -> None:
    """Children inherit the session's keyring, with whatever tokens and tickets the login put there: an empty one instead, in
    which nobody can leave anything for another."""
    call = SYS_KEYCTL[os.uname().machine]
    try:
        syscall(LIBC.syscall(call, KEYCTL_JOIN_SESSION_KEYRING, None))
        syscall(LIBC.syscall(call, KEYCTL_SETPERM, SESSION_KEYRING, 0))
    except OSError as error:
        # A kernel that has none, or a filter that keeps all of us from them.
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise


def filter_calls(program: bytes) -> None:
    """Let a seccomp program (see `seccomp.py`) decide about every system call from here on."""
    held = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: number of instructions, padding, address
    described = (len(program) // 8).to_bytes(8, "little") + ctypes.addressof(held).to_bytes(8, "little")
    syscall(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0))


def drop_privileges() -> None:
    """No capability now, none to be had later."""
    syscall(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    LIBC.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    syscall(LIBC.syscall(SYS_CAPSET[os.uname().machine], header, (ctypes.c_uint32 * 6)()))


def restrict(rules: Request) -> None:
    """Landlock: read-only and writable folders, nothing else; no TCP unless asked for."""
    handled_files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(rules["abi"], 16)) - 1
    handled_tcp = 3 if rules["abi"] >= 4 and not rules["tcp"] else 0
    attributes = handled_files.to_bytes(8, "little") + handled_tcp.to_bytes(8, "little")
    attributes = attributes if rules["abi"] >= 4 else attributes[:8]
    ruleset = syscall(LIBC.syscall(LANDLOCK["create"], attributes, ctypes.c_size_t(len(attributes)), 0))
    read_only = 1 | 1 << 2 | 1 << 3
    for folders, access in (
        (rules["read"], read_only),
        (rules["write"], handled_files),
        (rules["devices"], 1 << 1 | 1 << 2),
    ):
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
                granted = access if stat.S_ISDIR(os.fstat(opened).st_mode) else access & (1 | 1 << 1 | 1 << 2)
                rule = granted.to_bytes(8, "little") + opened.to_bytes(4, "little")
                syscall(LIBC.syscall(LANDLOCK["add"], ruleset, 1, rule, 0))
                os.close(opened)
    syscall(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    syscall(LIBC.syscall(LANDLOCK["restrict"], ruleset, 0))
    os.close(ruleset)


# What follows runs inside the sandbox, as its user: a link that leads elsewhere leads elsewhere in the sandbox.


def put_file(request: Request) -> None:
    path = request["path"]
    temporary = os.path.join(os.path.dirname(path), f".gymflow-{os.getpid()}.part")
    if os.path.isdir(path) and not os.path.islink(path):
        raise IsADirectoryError(errno.EISDIR, path)
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    target = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        copy(0, target, request["size"])
        os.fchmod(target, request["mode"])
        os.close(target)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def get_file(request: Request) -> None:
    source = os.open(request["path"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(source)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, request["path"])
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, request["path"])
    if status.st_size > request["max_bytes"]:
        raise OSError(errno.EFBIG, request["path"])
    copy(source, 1, request["max_bytes"] + 1)


def copy(source: int, target: int, limit: int) -> int:
    copied = 0
    while copied < limit and (block := os.read(source, min(1 << 20, limit - copied))):
        view = memoryview(block)
        while view:
            view = view[os.write(target, view) :]
        copied += len(block)
    return copied


def put_archive(request: Request) -> None:
    os.makedirs(request["path"], exist_ok=True)
    with open(0, "rb") as source, tarfile.open(fileobj=source, mode="r:") as tar:
        tar.extractall(request["path"], filter="data")


class Padded:
    """A file that is as long as it was said to be: another process may be cutting it."""

    def __init__(self, source: BinaryIO) -> None:
        self.source = source

    def read(self, size: int = -1, /) -> bytes:
        return self.source.read(size).ljust(size, b"\0")


def listed(folder: str) -> list[str]:
    """The names in a folder; none where it cannot be read: no longer there, no right to it, a path that is too long."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def get_archive(request: Request) -> None:
    root, left, files = request["path"], request["max_bytes"], 0
    if not os.path.isdir(root):
        os.stat(root)
        raise NotADirectoryError(errno.ENOTDIR, root)
    excluded = frozenset(request["exclude"])
    with open(1, "wb") as sink, tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        waiting = [""]
        while waiting:  # not `os.walk`, whose recursion ends where an agent's folders go on
            below = waiting.pop()
            for name in listed(os.path.join(root, below)):
                if name in excluded:
                    continue
                inner = os.path.join(below, name)
                path = os.path.join(root, inner)
                try:
                    member = tar.gettarinfo(path, inner)
                except OSError:
                    continue
                if member is None or not (member.isreg() or member.issym() or member.isdir() or member.islnk()):
                    continue
                files += 1
                left -= member.size
                if left < 0 or files > request["max_files"]:
                    raise OSError(errno.EFBIG, root)
                if not member.isreg():
                    tar.addfile(member)
                    if member.isdir() and inner.count("/") < MAX_DEPTH:
                        waiting.append(inner)
                    continue
                with contextlib.suppress(PermissionError), open(path, "rb") as source:
                    tar.addfile(member, Padded(source))


def listen(request: Request) -> socket.socket:
    """A socket that listens inside, handed out to the process that we serve."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", request["port"]))
    listening.listen(128)
    return listening


FILE_OPERATIONS: dict[str, Callable[[Request], socket.socket | None]] = {
    "put_file": put_file,
    "get_file": get_file,
    "put_archive": put_archive,
    "get_archive": get_archive,
    "listen": listen,
}

if __name__ == "__main__":
    main()
