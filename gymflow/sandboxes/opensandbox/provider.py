"""The `opensandbox` provider. The server: OPEN_SANDBOX_DOMAIN (host:port, or a URL), and OPEN_SANDBOX_API_KEY where it wants one.

Its API: https://github.com/alibaba/OpenSandbox/tree/main/specs
"""

import asyncio
import contextlib
import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from opensandbox import Sandbox as Remote
from opensandbox import SandboxManager
from opensandbox.config import ConnectionConfig
from opensandbox.exceptions import SandboxException
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule, SandboxFilter

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
from gymflow.sandboxes.labels import OWNER, PREFIX, matches, new_id, owned
from gymflow.sandboxes.opensandbox import failures
from gymflow.sandboxes.opensandbox.sandbox import OpenSandboxSandbox, removed, user_of

DOMAIN, KEY = "OPEN_SANDBOX_DOMAIN", "OPEN_SANDBOX_API_KEY"
PROXY = "GYMFLOW_OPENSANDBOX_PROXY"
"""Environment variable: `1` where sandboxes can only be reached through the server."""
IMAGE = "GYMFLOW_OPENSANDBOX_IMAGE"
"""Environment variable: the image where a spec names none."""
DEFAULT_IMAGE = "python:3.12-slim"
NAME = PREFIX + "sandbox"
"""Label with our own id: the server's is not known before a start has succeeded."""
START_S = 600.0
CALL_S = 60.0
LIFE_S = 24 * 3600
"""How long a sandbox lives at most where the spec does not say: nobody pays for one that was forgotten."""
SHORTEST_LIFE_S = 60
CPUS = 1.0
MEMORY_MIB = 2048
PAGE = 100


class OpenSandboxProvider(Provider):
    """Sandboxes of one server. No network, and lists of allowed hosts, are what its egress control makes of them: a server
    without it refuses them."""

    name = "opensandbox"
    remote = True

    def __init__(self) -> None:
        self._manager: SandboxManager | None = None

    @property
    def capabilities(self) -> Capability:
        return (
            Capability.NETWORK_NONE
            | Capability.NETWORK_OPEN
            | Capability.NETWORK_ALLOWLIST
            | Capability.CPU_LIMIT
            | Capability.MEMORY_LIMIT
            | Capability.KILL_TREE
            | Capability.SEPARATE_STDERR
            | Capability.USER
            | Capability.IMAGES
            | Capability.WRITABLE_ROOT
            | Capability.WALL_LIMIT
        )

    def _config(self) -> ConnectionConfig:
        domain = os.environ.get(DOMAIN)
        if not domain:
            raise SandboxUnavailable(f"no OpenSandbox server: set {DOMAIN} to its host:port, and {KEY} to its key")
        protocol, _, address = domain.rpartition("://")
        return ConnectionConfig(
            domain=address.rstrip("/"),
            protocol=protocol or "http",
            api_key=os.environ.get(KEY),
            request_timeout=timedelta(seconds=CALL_S),
            use_server_proxy=os.environ.get(PROXY) == "1",
            disable_metrics=True,
        )

    async def _managed(self) -> SandboxManager:
        if self._manager is None:
            self._manager = await SandboxManager.create(self._config())
        return self._manager

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
        wished = parameters(spec, {**owned(labels, wall_s=spec.limits.wall_s), NAME: name})
        manager = await self._managed()
        remote: Remote | None = None
        try:
            # A cancelled request may have made a sandbox all the same: it is looked for by its label and removed.
            remote = await Remote.create(**wished, connection_config=self._config())
            sandbox = OpenSandboxSandbox(name, spec, remote, manager)
            await sandbox.prepare()
        except BaseException as error:
            await asyncio.shield(self._abandon(name, remote))
            if isinstance(error, SandboxException):
                raise failures.of_call(error, "start a sandbox") from error
            raise
        return sandbox

    async def _abandon(self, name: str, remote: Remote | None) -> None:
        """Remove what a failed start may have made; that it cannot be is not what the caller has to know."""
        with contextlib.suppress(SandboxError, SandboxUnavailable):
            await self.remove(name)
        if remote is not None:
            await remote.close()

    async def _found(self, labels: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
        """The server's id and the labels of each."""
        manager, page = await self._managed(), 1
        found: list[tuple[str, dict[str, str]]] = []
        while True:
            wanted = SandboxFilter(metadata=labels or None, page=page, page_size=PAGE)
            try:
                answer = await manager.list_sandbox_infos(wanted)
            except SandboxException as error:
                raise failures.of_call(error, "list sandboxes") from error
            found += [(one.id, one.metadata or {}) for one in answer.sandbox_infos]
            if not answer.pagination.has_next_page:
                return found
            page += 1

    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        wanted = {key: label_value(value) for key, value in (labels or {}).items()}
        return [
            SandboxInfo(metadata[NAME], {key: value for key, value in metadata.items() if key != NAME})
            for _, metadata in await self._found(wanted)
            if NAME in metadata and OWNER in metadata and matches(metadata, wanted)
        ]

    async def remove(self, sandbox_id: str) -> None:
        for remote_id, metadata in await self._found({NAME: sandbox_id}):
            if metadata.get(NAME) == sandbox_id:
                await removed(await self._managed(), remote_id)

    async def close(self) -> None:
        if self._manager is not None:
            await self._manager.close()
            self._manager = None


def label_value(text: str) -> str:
    """A label's value as Kubernetes has them: at most 63 letters, digits, `-`, `_`, `.`. Another one becomes what is left of
    it and its digest."""
    if re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", text):
        return text
    return re.sub(r"[^A-Za-z0-9]", "", text)[:40] + "-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def parameters(spec: SandboxSpec, labels: dict[str, str]) -> dict[str, Any]:
    """What is asked of the server. Raises SandboxUnsupported for what it can only have in part."""
    try:
        user_of(spec)
    except ValueError:
        raise SandboxUnsupported(
            f"user: {spec.user}: OpenSandbox wants numbers (`1000`, `1000:1000`), or `root`"
        ) from None
    if spec.network == "open" and spec.allow:
        raise SandboxUnsupported(
            "with `network: open` every host is reachable: leave out `allow`, or say `network: none`"
        )
    if ports := [host for host in spec.allow if ":" in host or "/" in host]:
        raise SandboxUnsupported(f"allow: {', '.join(ports)}: OpenSandbox allows domains, all ports of them")
    if spec.limits.wall_s is not None and spec.limits.wall_s < SHORTEST_LIFE_S:
        raise SandboxUnsupported(f"limits.wall_s={spec.limits.wall_s:g}: OpenSandbox has {SHORTEST_LIFE_S} s and more")
    rules = [NetworkRule(action="allow", target=host) for host in spec.allow]
    limits = spec.limits
    return {
        "image": spec.image or os.environ.get(IMAGE) or DEFAULT_IMAGE,
        "timeout": timedelta(seconds=math.ceil(limits.wall_s or LIFE_S)),
        "ready_timeout": timedelta(seconds=START_S),
        "metadata": {key: label_value(value) for key, value in labels.items()},
        "resource": {"cpu": f"{limits.cpus or CPUS:g}", "memory": f"{limits.memory_mib or MEMORY_MIB}Mi"},
        "network_policy": None if spec.network == "open" else NetworkPolicy(defaultAction="deny", egress=rules),
    }
