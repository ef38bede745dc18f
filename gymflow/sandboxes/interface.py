"""The interface that every provider has: start, exec, put, get, stop, and listing by label.

    async with open_sandbox(SandboxSpec(limits=SandboxLimits(memory_mib=512))) as sandbox:
        await sandbox.put("/work/main.py", b"print(6 * 7)")
        result = await sandbox.exec(["python3", "main.py"], timeout_s=5)
        assert result.ok and result.stdout == b"42\\n"

Paths are absolute, or relative to the spec's workdir. Bytes stay exact. `exec` is never retried here: only the caller knows
whether a command may run twice.
"""

import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from pathlib import Path
from typing import Literal

from gymflow.contracts.sandbox import ExecOutcome, Network, SandboxLimits, SandboxSpec
from gymflow.sandboxes.errors import SandboxError, SandboxUnsupported, TooLarge, said_error
from gymflow.sandboxes.labels import is_orphan

Isolation = Literal["full", "weak", "none"]
"""`full`: own namespaces or a machine of its own. `weak`: files of the host are out of reach, perhaps its network, while its
processes stay visible. `none`: a plain process of this user."""

Command = str | Sequence[str]
"""An argument vector, or a line for `/bin/sh -c`."""

KEEP_BYTES = 1 << 20
GET_BYTES = 512 << 20
GET_FILES = 100_000


class Capability(Flag):
    """What a provider can do beyond start, exec, put, get and stop."""

    NONE = 0
    NETWORK_NONE = auto()
    NETWORK_GATEWAY = auto()
    NETWORK_OPEN = auto()
    NETWORK_ALLOWLIST = auto()
    CPU_LIMIT = auto()
    MEMORY_LIMIT = auto()
    PROCESS_LIMIT = auto()
    DISK_LIMIT = auto()
    OOM_REPORT = auto()
    """Running out of memory is told apart from being killed."""
    KILL_TREE = auto()
    """A timeout ends also children that changed session or parent."""
    SEPARATE_STDERR = auto()
    USER = auto()
    """The user can be chosen at start."""
    EXEC_USER = auto()
    """The user can be chosen for each command."""
    IMAGES = auto()
    WRITABLE_ROOT = auto()
    """System folders such as /usr can be written to."""
    USAGE = auto()
    """CPU seconds of each command are reported."""
    MOUNTS = auto()
    WALL_LIMIT = auto()
    """The sandbox ends at `wall_s` even when the process that started it is gone."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command used. None: the provider does not say."""

    cpu_s: float | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended and what it wrote. `exit_code` is 128 + n where signal n ended it, as a shell reports it.

    `stdout` and `stderr` hold at most what the caller wanted kept; `truncated` says that more was written.
    """

    outcome: ExecOutcome
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    duration_s: float
    truncated: bool = False
    usage: Usage = field(default_factory=Usage)

    @property
    def ok(self) -> bool:
        """Exited with zero."""
        return self.outcome == "exited" and self.exit_code == 0

    def text(self) -> str:
        """Both streams for a reader, undecodable bytes replaced."""
        return (self.stdout + self.stderr).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine, seen read-only inside. Only the engine mounts: a spec cannot."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """A sandbox that exists, as its labels tell."""

    sandbox_id: str
    labels: Mapping[str, str]


def argv_of(command: Command) -> list[str]:
    """The argument vector of a command; a string goes through the sandbox's shell."""
    return ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)


class Sandbox(ABC):
    """One started sandbox."""

    def __init__(self, sandbox_id: str, spec: SandboxSpec, isolation: Isolation) -> None:
        self.id = sandbox_id
        self.spec = spec
        self.isolation = isolation
        self.since = time.monotonic()
        """Not after its `limits.wall_s` began to run, by this process's clock."""

    @abstractmethod
    async def exec(
        self,
        command: Command,
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        timeout_s: float = 60.0,
        keep_bytes: int = KEEP_BYTES,
    ) -> ExecResult:
        """Run a command to its end. Children that it leaves in the background live on, except after a timeout, a
        cancellation or an exceeded output limit, which end its whole tree. `keep_bytes` holds for each stream.

        Raises SandboxLost where there is no sandbox any more, SandboxError where the provider failed.
        """

    async def furnish(self) -> None:
        """Put the spec's files in place."""
        for path, text in self.spec.files.items():
            await self.put(path, text.encode())

    @abstractmethod
    async def put(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, folders above it included; what stood at its path is replaced, a link not followed.

        Raises IsADirectoryError, and OSError with the errno for what else the sandbox's files do not allow: a full disk
        (ENOSPC), a name that is too long, a loop of links, no right to write there.
        """

    @abstractmethod
    async def get(self, path: str, *, max_bytes: int = GET_BYTES) -> bytes:
        """Read a regular file. Raises FileNotFoundError, IsADirectoryError, UnsafePath, TooLarge, OSError as `put`."""

    async def put_archive(self, path: str, archive: bytes) -> None:
        """Unpack a tar archive (see `archive.pack`) into a folder, which is made where it lacks. Raises OSError as `put`."""
        from gymflow.sandboxes.archive import checked

        target = shlex.quote(self.resolve(path))
        result = await self.exec(
            f"mkdir -p {target} && tar -x -o -f - -C {target}", stdin=checked(archive), timeout_s=300
        )
        if not result.ok:
            if error := said_error(result.text(), path):
                raise error
            raise SandboxError(f"could not unpack into {path}: {result.text().strip()[:400]}")

    async def get_archive(
        self, path: str, *, max_bytes: int = GET_BYTES, max_files: int = GET_FILES, exclude: Sequence[str] = ()
    ) -> bytes:
        """A folder as a checked tar archive: files, folders and links that stay inside; the rest is left out.

        `exclude`: names (not paths) left out wherever they occur. Raises FileNotFoundError, NotADirectoryError, TooLarge.
        """
        from gymflow.sandboxes.archive import normalised

        folder = shlex.quote(self.resolve(path))
        probe = await self.exec(
            f"test -e {folder} || exit 44; test -d {folder} || exit 45; tar -c -f - -C {folder} .",
            timeout_s=300,
            keep_bytes=max_bytes + 2048 * max_files,
        )
        if probe.exit_code == 44:
            raise FileNotFoundError(path)
        if probe.exit_code == 45:
            raise NotADirectoryError(path)
        if probe.truncated or probe.outcome == "output_limit":
            raise TooLarge(f"{path} holds more than {max_bytes} bytes")
        if not probe.ok and not probe.stdout:
            if error := said_error(probe.text(), path):
                raise error
            raise SandboxError(f"could not read {path}: {probe.text().strip()[:400]}")
        return normalised(probe.stdout, max_bytes=max_bytes, max_files=max_files, exclude=exclude)

    @abstractmethod
    async def stop(self) -> None:
        """Remove it with everything that runs in it. Idempotent, and safe to call while a command runs."""

    def resolve(self, path: str) -> str:
        """A path as an absolute one."""
        return path if path.startswith("/") else f"{self.spec.workdir}/{path}"


class Provider(ABC):
    """Starts sandboxes of one kind. One instance serves a process; its methods may run concurrently."""

    name: str
    remote = False
    """Whether its sandboxes run on other machines, which share nothing with this one."""

    @property
    @abstractmethod
    def capabilities(self) -> Capability:
        """What it can do on this machine."""

    @property
    def isolation(self) -> Isolation:
        """How well it isolates on this machine."""
        return "full"

    def sample(self, image: str | None = None) -> SandboxSpec:
        """The smallest and most closed sandbox that it can start, for `gym sandbox check`."""
        limits = SandboxLimits(
            memory_mib=128 if Capability.MEMORY_LIMIT in self.capabilities else None,
            processes=64 if Capability.PROCESS_LIMIT in self.capabilities else None,
        )
        network: Network = "none" if Capability.NETWORK_NONE in self.capabilities else "open"
        return SandboxSpec(provider=self.name, image=image, limits=limits, network=network)

    @abstractmethod
    async def start(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> Sandbox:
        """A sandbox that is ready for commands, its files in place; a failed or cancelled start leaves nothing behind.

        `gateway`: Unix socket of the model gateway, for `network: gateway`.
        Raises SandboxUnsupported, SandboxUnavailable.
        """

    async def run(
        self,
        spec: SandboxSpec,
        command: Command,
        *,
        files: Mapping[str, bytes] | None = None,
        mounts: Sequence[Mount] = (),
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        keep_bytes: int = KEEP_BYTES,
    ) -> ExecResult:
        """One command in a sandbox of its own, files put in first. Providers that can do it in one go do."""
        sandbox = await self.start(spec, mounts=mounts)
        try:
            for path, data in (files or {}).items():
                await sandbox.put(path, data)
            return await sandbox.exec(command, stdin=stdin, timeout_s=timeout_s, keep_bytes=keep_bytes)
        finally:
            await sandbox.stop()

    @abstractmethod
    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        """Sandboxes that exist and carry these labels, whoever started them."""

    @abstractmethod
    async def remove(self, sandbox_id: str) -> None:
        """Remove a sandbox by id, without the process that started it. Idempotent."""

    async def clean(self) -> int:
        """Remove sandboxes whose owner has ended or whose time is over, and only those; how many."""
        orphans = [info for info in await self.list() if is_orphan(info.labels)]
        for orphan in orphans:
            await self.remove(orphan.sandbox_id)
        return len(orphans)

    async def image_identity(self, image: str | None) -> str:
        """What must be equal for two sandboxes to hold the same files at start; part of a rollout's key."""
        return image or "default"

    async def close(self) -> None:  # noqa: B027
        """Release connections; idempotent."""


_LIMITS = {
    "cpus": Capability.CPU_LIMIT,
    "memory_mib": Capability.MEMORY_LIMIT,
    "processes": Capability.PROCESS_LIMIT,
    "disk_mib": Capability.DISK_LIMIT,
}
_NETWORKS = {
    "none": Capability.NETWORK_NONE,
    "gateway": Capability.NETWORK_GATEWAY,
    "open": Capability.NETWORK_OPEN,
}


def refuse_unsupported(provider: Provider, spec: SandboxSpec, mounts: Sequence[Mount] = ()) -> None:
    """Raises SandboxUnsupported that names every wish which the provider cannot fulfil here."""
    wished = [(f"limits.{name}", flag) for name, flag in _LIMITS.items() if getattr(spec.limits, name) is not None]
    wished.append((f"network: {spec.network}", _NETWORKS[spec.network]))
    if spec.allow:
        wished.append(("allow", Capability.NETWORK_ALLOWLIST))
    if spec.image is not None:
        wished.append((f"image: {spec.image}", Capability.IMAGES))
    if spec.user is not None:
        wished.append((f"user: {spec.user}", Capability.USER))
    if mounts:
        wished.append(("mounts", Capability.MOUNTS))
    lacking = [wish for wish, flag in wished if flag not in provider.capabilities]
    if lacking:
        raise SandboxUnsupported(
            f"sandbox provider `{provider.name}` cannot do {', '.join(lacking)} here; "
            "leave it out or choose another provider (`gym sandbox check`)"
        )


def refuse_options(provider: Provider, spec: SandboxSpec, known: Collection[str]) -> None:
    """Raises SandboxUnsupported that names the options which the provider does not have."""
    if unknown := spec.options.keys() - set(known):
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise SandboxUnsupported(
            f"sandbox provider `{provider.name}` has no option {', '.join(sorted(unknown))}; {has}"
        )
