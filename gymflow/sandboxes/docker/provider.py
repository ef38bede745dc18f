"""The `docker` provider: one container per sandbox, no capability, no network unless asked for."""

import asyncio
import io
import os
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.docker.disk import bound
from gymflow.sandboxes.docker.engine import Engine, EngineError
from gymflow.sandboxes.docker.inside import can_enter
from gymflow.sandboxes.docker.network import open_gateway
from gymflow.sandboxes.docker.sandbox import PROCESSES, DockerSandbox, remove, user_of
from gymflow.sandboxes.errors import SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes.interface import (
    Capability,
    Mount,
    Provider,
    Sandbox,
    SandboxInfo,
    refuse_options,
    refuse_unsupported,
)
from gymflow.sandboxes.labels import OWNER, matches, new_id, owned

IMAGE = "GYMFLOW_DOCKER_IMAGE"
"""Environment variable: the image where a spec names none."""
DEFAULT_IMAGE = "gymflow/sandbox"
MEMORY_MIB = 2048
PULL_S = 1800.0
WAIT = 'n=${1:-0}; if [ "$n" -gt 0 ]; then exec sleep "$n"; fi; while :; do sleep 86400; done'
ROOT_KEEPS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID", "KILL"]
"""What a sandbox whose user is root keeps of Docker's default capabilities: enough for a package manager."""
OPTIONS = frozenset({"runtime", "shm_mib"})


class DockerProvider(Provider):
    """Containers of one daemon.

    Options: `runtime`, an OCI runtime that the daemon knows, such as `runsc` for gVisor, a kernel of its own in user space
    (a command that exceeds the memory limit there takes the sandbox with it); `shm_mib`.
    """

    name = "docker"

    def __init__(self, host: str | None = None) -> None:
        self._engine = Engine(host)

    @property
    def capabilities(self) -> Capability:
        entered = Capability.NETWORK_GATEWAY | Capability.DISK_LIMIT
        return (
            (entered if can_enter(self._engine.host) else Capability.NONE)
            | Capability.NETWORK_NONE
            | Capability.NETWORK_OPEN
            | Capability.CPU_LIMIT
            | Capability.MEMORY_LIMIT
            | Capability.PROCESS_LIMIT
            | Capability.OOM_REPORT
            | Capability.KILL_TREE
            | Capability.SEPARATE_STDERR
            | Capability.USER
            | Capability.EXEC_USER
            | Capability.IMAGES
            | Capability.WRITABLE_ROOT
            | Capability.MOUNTS
            | Capability.WALL_LIMIT
        )

    async def problem(self) -> str | None:
        """Why no container can be had here; None where one can."""
        try:
            await self._engine.call("GET", "/version", timeout_s=10)
            return None
        except (SandboxUnavailable, EngineError) as error:
            return str(error)

    async def start(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> Sandbox:
        refuse_unsupported(self, spec, mounts)
        refuse_options(self, spec, OPTIONS)
        inside = [wish for wish, is_set in (("network: gateway", spec.network == "gateway"), ("limits.disk_mib", spec.limits.disk_mib)) if is_set]  # fmt: skip
        if inside and "runtime" in spec.options:
            raise SandboxUnsupported(
                f"{', '.join(inside)}: only with the daemon's own runtime; leave out the option `runtime`"
            )
        name = new_id()
        environment = {"HOME": home_of(spec), "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", **spec.env}
        body = self._body(spec, name, environment, owned(labels, wall_s=spec.limits.wall_s), mounts)
        sandbox = DockerSandbox(name, spec, self._engine, environment)
        try:
            # A daemon that is asked to create goes on when the asker leaves: wait, so that there is something to remove.
            creating = asyncio.ensure_future(self._create(name, body))
            try:
                await asyncio.shield(creating)
            except asyncio.CancelledError:
                await asyncio.wait([creating])
                raise
            await self._make_folders(name, spec)
            await self._engine.call("POST", f"/containers/{name}/start")
            if inside:
                await self._enter(sandbox, spec, gateway)
            await sandbox.furnish()
        except EngineError as error:
            await asyncio.shield(sandbox.stop())
            raise SandboxUnavailable(f"the container did not start: {error}", cause=error) from error
        except BaseException:
            await asyncio.shield(sandbox.stop())
            raise
        return sandbox

    async def _enter(self, sandbox: DockerSandbox, spec: SandboxSpec, gateway: Path | None) -> None:
        """What is arranged in a container that runs, from outside."""
        state = await self._engine.call("GET", f"/containers/{sandbox.id}/json")
        container_id, pid = state["Id"], state["State"]["Pid"]
        if spec.limits.disk_mib is not None:
            uid, gid = owner_of(spec)
            await bound(
                container_id, pid, workdir=spec.workdir, home=home_of(spec), owner=(uid, gid), mib=spec.limits.disk_mib
            )
        if spec.network == "gateway" and gateway is not None:
            sandbox.reach(await open_gateway(container_id, pid, gateway))

    def _body(
        self, spec: SandboxSpec, name: str, environment: Mapping[str, str], labels: Mapping[str, str], mounts: Sequence[Mount]
    ) -> dict[str, Any]:  # fmt: skip
        limits = spec.limits
        memory = (limits.memory_mib or MEMORY_MIB) << 20
        root = user_of(spec).split(":")[0] in ("0", "root")
        host: dict[str, Any] = {
            "AutoRemove": True,
            "Init": True,
            "NetworkMode": "bridge" if spec.network == "open" else "none",
            "Memory": memory,
            "MemorySwap": memory,
            "PidsLimit": limits.processes or PROCESSES,
            "CapDrop": ["ALL"],
            "CapAdd": ROOT_KEEPS if root else [],
            "SecurityOpt": ["no-new-privileges"],
            "Binds": [f"{mount.source}:{mount.target}:ro" for mount in mounts],
        }
        if limits.cpus is not None:
            host["NanoCpus"] = int(limits.cpus * 1e9)
        if "runtime" in spec.options:
            host["Runtime"] = spec.options["runtime"]
        if "shm_mib" in spec.options:
            host["ShmSize"] = int(spec.options["shm_mib"]) << 20
        return {
            "Image": spec.image or os.environ.get(IMAGE) or DEFAULT_IMAGE,
            "Entrypoint": ["/bin/sh", "-c", WAIT, "sh", str(int(limits.wall_s + 0.999) if limits.wall_s else 0)],
            "Cmd": [],
            "Hostname": "sandbox",
            "User": "0",
            "Env": [f"{key}={value}" for key, value in environment.items()],
            "Labels": dict(labels),
            "HostConfig": host,
        }

    async def _create(self, name: str, body: dict[str, Any]) -> None:
        try:
            await self._engine.call("POST", "/containers/create", body, query={"name": name})
        except EngineError as error:
            if error.status != 404:
                raise
            await self._pull(body["Image"])
            await self._engine.call("POST", "/containers/create", body, query={"name": name})

    async def _pull(self, image: str) -> None:
        """Fetch an image that is not here. The daemon answers 200 also when it fails half-way: the next create says so."""
        name, _, tag = image.rpartition(":") if ":" in image.rsplit("/", 1)[-1] else (image, "", "latest")
        try:
            await self._engine.call("POST", "/images/create", query={"fromImage": name, "tag": tag}, timeout_s=PULL_S)
        except EngineError as error:
            raise SandboxUnavailable(
                f"image {image!r} is not here and cannot be fetched ({error}); build it with `gym sandbox image`",
                cause=error,
            ) from error

    async def _make_folders(self, name: str, spec: SandboxSpec) -> None:
        """The workdir and the home of the sandbox's user; by the daemon, since nothing inside may give files away."""
        uid, gid = owner_of(spec)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for folder in (spec.workdir, home_of(spec)):
                member = tarfile.TarInfo(folder.lstrip("/"))
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                member.uid, member.gid = uid, gid
                tar.addfile(member)
        await self._engine.call("PUT", f"/containers/{name}/archive", query={"path": "/"}, data=buffer.getvalue())

    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        try:
            found = await self._engine.call("GET", "/containers/json", query={"all": "true", "filters": f'{{"label":["{OWNER}"]}}'})  # fmt: skip
        except EngineError as error:
            raise SandboxUnavailable(f"the Docker daemon does not list containers: {error}", cause=error) from error
        infos = [SandboxInfo(container["Names"][0].lstrip("/"), container["Labels"]) for container in found]
        return [info for info in infos if matches(info.labels, labels)]

    async def remove(self, sandbox_id: str) -> None:
        await remove(self._engine, sandbox_id)

    async def image_identity(self, image: str | None) -> str:
        """The content digest of the image, where it is here."""
        name = image or os.environ.get(IMAGE) or DEFAULT_IMAGE
        try:
            return str((await self._engine.call("GET", f"/images/{name}/json"))["Id"])
        except (EngineError, SandboxUnavailable):
            return name

    async def close(self) -> None:
        await self._engine.close()


def owner_of(spec: SandboxSpec) -> tuple[int, int]:
    """Uid and gid of the user's folders; root's, where only the image knows a user's number."""
    uid, _, gid = user_of(spec).partition(":")
    number = int(uid) if uid.isdigit() else 0
    return number, int(gid) if gid.isdigit() else number


def home_of(spec: SandboxSpec) -> str:
    """The home folder of the sandbox's user."""
    return "/root" if user_of(spec).split(":")[0] in ("0", "root") else "/home/agent"
