"""The `openshell` provider: one sandbox of a gateway each, its policy written out of the spec."""

import asyncio
import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from openshell._proto import openshell_pb2, sandbox_pb2

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.errors import SandboxError, SandboxUnavailable, SandboxUnsupported
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
from gymflow.sandboxes.openshell.gateway import Gateway, details_of
from gymflow.sandboxes.openshell.sandbox import DELETING, READY, OpenShellSandbox

START_S = 600.0
POLL_S = 1.0
ENDED = {3: "error", 4: "deleting", 7: "stopped", 9: "completed"}
"""Phases out of which no sandbox becomes ready."""
PORTS = (80, 443)
LABEL_CHARACTERS = 63
READ_ONLY = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/proc", "/dev/urandom", "/var/lib", "/var/log")
READ_WRITE = ("/sandbox", "/tmp", "/dev/null")


class OpenShellProvider(Provider):
    """Sandboxes of one gateway; see `gateway` for which."""

    name = "openshell"
    remote = True

    def __init__(self) -> None:
        self._opened: Gateway | None = None

    @property
    def capabilities(self) -> Capability:
        return (
            Capability.NETWORK_NONE
            | Capability.NETWORK_ALLOWLIST
            | Capability.KILL_TREE
            | Capability.SEPARATE_STDERR
            | Capability.IMAGES
        )

    def sample(self, image: str | None = None) -> SandboxSpec:
        return SandboxSpec(provider=self.name, image=image, workdir="/sandbox/work")

    def _gateway(self) -> Gateway:
        if self._opened is None:
            self._opened = Gateway()
        return self._opened

    async def start(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> Sandbox:
        refuse_unsupported(self, spec, mounts)
        refuse_options(self, spec, ())
        name = new_id()
        wished = openshell_pb2.SandboxSpec(environment=spec.env, policy=policy(spec))
        if spec.image:
            wished.template.image = spec.image
        served = self._gateway()
        tags = {key: fitting(value) for key, value in owned(labels, wall_s=spec.limits.wall_s).items()}
        try:
            # A call in a thread goes on when its caller leaves: wait, so that there is something to remove.
            creating = asyncio.ensure_future(
                served.call("start a sandbox", served.client.create, spec=wished, name=name, labels=tags)
            )
            try:
                await asyncio.shield(creating)
            except asyncio.CancelledError:
                await asyncio.wait([creating])
                raise
            await self._ready(served, name)
            sandbox = OpenShellSandbox(name, spec, served)
            await sandbox.prepare()
        except grpc.RpcError as error:
            await asyncio.shield(self._abandon(name))
            raise SandboxUnavailable(f"the OpenShell gateway cannot start a sandbox: {details_of(error)}", cause=error) from error  # fmt: skip
        except BaseException:
            await asyncio.shield(self._abandon(name))
            raise
        return sandbox

    async def _ready(self, served: Gateway, name: str) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            status = (await served.call("look at a sandbox", served.client.get, name)).status
            if status.phase == READY:
                return
            if status.phase in ENDED:
                why = "; ".join(f"{one.reason}: {one.message}" for one in status.conditions) or "no reason was given"
                raise SandboxUnavailable(f"the sandbox did not start, it is {ENDED[status.phase]}: {why}")
            await asyncio.sleep(POLL_S)
        raise SandboxUnavailable(f"the sandbox was not ready within {START_S:.0f} s")

    async def _abandon(self, name: str) -> None:
        """Remove what a failed start may have made; that it cannot be is not what the caller has to know."""
        with contextlib.suppress(SandboxError, SandboxUnavailable, grpc.RpcError):
            await self.remove(name)

    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        served, wanted = self._gateway(), {key: fitting(value) for key, value in (labels or {}).items()}
        try:
            found = await served.call(
                "list sandboxes", served.client.list_all, label_selector=",".join(f"{key}={value}" for key, value in wanted.items())
            )  # fmt: skip
        except grpc.RpcError as error:
            raise SandboxUnavailable(f"the OpenShell gateway does not list sandboxes: {details_of(error)}", cause=error) from error  # fmt: skip
        infos = [SandboxInfo(one.name, dict(one.labels)) for one in found if one.status.phase != DELETING]
        return [info for info in infos if OWNER in info.labels and matches(info.labels, wanted)]

    async def remove(self, sandbox_id: str) -> None:
        served = self._gateway()
        await served.call("remove a sandbox", served.client.delete, sandbox_id, allow_missing=True)

    async def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def policy(spec: SandboxSpec) -> Any:
    """The gateway's policy for a spec: files as in its own examples, and no egress but to the allow-list."""
    made = sandbox_pb2.SandboxPolicy(version=1)
    made.filesystem.include_workdir = True
    made.filesystem.read_only.extend(READ_ONLY)
    made.filesystem.read_write.extend(dict.fromkeys([*READ_WRITE, spec.workdir]))
    made.landlock.compatibility = "best_effort"
    for number, host in enumerate(spec.allow):
        rule = made.network_policies[f"allow-{number}"]
        rule.name = host
        name, ports = host_and_ports(host)
        rule.endpoints.add(host=name, port=ports[0], ports=ports)
        rule.binaries.add(path="/**")
    return made


def host_and_ports(entry: str) -> tuple[str, list[int]]:
    """A host of an allow-list and its ports, the web's where none is given. Raises SandboxUnsupported."""
    host, colon, port = entry.partition(":")
    if "/" in entry or not host or host in ("*", "**") or (colon and not port.isdigit()):
        raise SandboxUnsupported(
            f"allow: {entry}: OpenShell allows `host` or `host:port`, with `*` in its first part at most"
        )
    return host, [int(port)] if port else list(PORTS)


def fitting(value: str) -> str:
    """A value as labels there may be: letters, digits, `.`, `_`, `-`, and 63 of them at most."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", value)[:LABEL_CHARACTERS].strip("._-")
