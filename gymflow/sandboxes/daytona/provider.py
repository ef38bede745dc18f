"""The `daytona` provider. The account: DAYTONA_API_KEY, and DAYTONA_API_URL and DAYTONA_TARGET where not Daytona's defaults."""

import asyncio
import contextlib
import ipaddress
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    DaytonaConfig,
    DaytonaError,
    DaytonaGoneError,
    DaytonaNotFoundError,
    ListSandboxesQuery,
    Resources,
)

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.daytona import failures
from gymflow.sandboxes.daytona.sandbox import DaytonaSandbox, removed
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

START_S = 600.0
"""A first start from an image builds a snapshot of it."""
REQUEST_S = 30.0
"""How long Daytona may take to know a sandbox that it was asked for."""
LIFE_S = 24 * 3600.0
"""How long a sandbox lives at most where the spec does not say: nobody pays for one that was forgotten."""
OPTIONS = frozenset({"snapshot"})
GONE = ("destroyed", "destroying")


class DaytonaProvider(Provider):
    """Sandboxes of one account. Options: `snapshot`, the one to start from where the spec names no image."""

    name = "daytona"
    remote = True

    def __init__(self) -> None:
        self._opened: AsyncDaytona | None = None

    @property
    def capabilities(self) -> Capability:
        return (
            Capability.NETWORK_NONE
            | Capability.NETWORK_OPEN
            | Capability.NETWORK_ALLOWLIST
            | Capability.CPU_LIMIT
            | Capability.MEMORY_LIMIT
            | Capability.DISK_LIMIT
            | Capability.KILL_TREE
            | Capability.SEPARATE_STDERR
            | Capability.USER
            | Capability.IMAGES
            | Capability.WALL_LIMIT
        )

    def sample(self, image: str | None = None) -> SandboxSpec:
        return SandboxSpec(provider=self.name, image=image)

    def client(self) -> AsyncDaytona:
        """The SDK's client of the account in the environment. Raises SandboxUnavailable where there is none."""
        if self._opened is None:
            key, token = os.environ.get("DAYTONA_API_KEY"), os.environ.get("DAYTONA_JWT_TOKEN")
            if not key and not token:
                raise SandboxUnavailable("no Daytona account: set DAYTONA_API_KEY (its dashboard makes one)")
            config = DaytonaConfig(
                api_key=key,
                jwt_token=token,
                organization_id=os.environ.get("DAYTONA_ORGANIZATION_ID"),
                api_url=os.environ.get("DAYTONA_API_URL"),
                target=os.environ.get("DAYTONA_TARGET"),
            )
            try:
                self._opened = AsyncDaytona(config)
            except DaytonaError as error:
                raise failures.of_call(error, "be used") from error
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
        refuse_options(self, spec, OPTIONS)
        name = new_id()
        params = parameters(spec, name, owned(labels, wall_s=spec.limits.wall_s))
        client = self.client()
        # What is asked for is made also when the asker leaves: wait a little, so that there is something to remove.
        creating = asyncio.ensure_future(client.create(params, timeout=START_S))
        try:
            try:
                remote = await asyncio.shield(creating)
            except asyncio.CancelledError:
                await asyncio.wait([creating], timeout=REQUEST_S)
                creating.cancel()
                raise
            sandbox = DaytonaSandbox(name, spec, remote, client)
            await sandbox.prepare()
        except DaytonaError as error:
            await asyncio.shield(self._abandon(name))
            raise failures.of_call(error, "start a sandbox") from error
        except BaseException:
            await asyncio.shield(self._abandon(name))
            raise
        return sandbox

    async def _abandon(self, name: str) -> None:
        """Remove what a failed start may have made; that it cannot be is not what the caller has to know."""
        with contextlib.suppress(SandboxError, SandboxUnavailable):
            await self.remove(name)

    async def list(self, labels: Mapping[str, str] | None = None) -> list[SandboxInfo]:
        query = ListSandboxesQuery(labels=dict(labels)) if labels else None
        try:
            found = [one async for one in self.client().list(query, request_timeout=REQUEST_S)]
        except DaytonaError as error:
            raise failures.of_call(error, "list sandboxes") from error
        return [
            SandboxInfo(one.name, one.labels)
            for one in found
            if OWNER in one.labels
            and matches(one.labels, labels)
            and (one.state is None or one.state.value not in GONE)
        ]

    async def remove(self, sandbox_id: str) -> None:
        try:
            remote: AsyncSandbox = await self.client().get(sandbox_id, request_timeout=REQUEST_S)
        except (DaytonaNotFoundError, DaytonaGoneError):
            return
        except DaytonaError as error:
            raise failures.of_call(error, "remove a sandbox") from error
        await removed(self.client(), remote)

    async def close(self) -> None:
        if self._opened is not None:
            client: Any = self._opened
            await client.close()
            self._opened = None


def parameters(
    spec: SandboxSpec, name: str, labels: dict[str, str]
) -> CreateSandboxFromImageParams | CreateSandboxFromSnapshotParams:
    """What is asked of Daytona. Raises SandboxUnsupported for what it can only have in part."""
    networks, domains = allowed(spec.allow)
    common: dict[str, Any] = {
        "name": name,
        "labels": labels,
        "env_vars": spec.env,
        "os_user": spec.user,
        "ephemeral": True,
        "auto_stop_interval": 0,
        "ttl_minutes": math.ceil((spec.limits.wall_s or LIFE_S) / 60),
        # Daytona blocks everything before it looks at its lists, and a list alone blocks what is not on it.
        "network_block_all": spec.network == "none" and not spec.allow,
        "network_allow_list": ",".join(networks) or None,
        "domain_allow_list": ",".join(domains) or None,
    }
    if spec.network == "open" and spec.allow:
        raise SandboxUnsupported(
            "with `network: open` every host is reachable: leave out `allow`, or say `network: none`"
        )
    limits = spec.limits
    wished = {"cpus": limits.cpus, "memory_mib": limits.memory_mib, "disk_mib": limits.disk_mib}
    if spec.image is None:
        if named := [f"limits.{key}" for key, value in wished.items() if value is not None]:
            raise SandboxUnsupported(
                f"a Daytona snapshot has its own {', '.join(named)}: leave them out, or name an `image`"
            )
        return CreateSandboxFromSnapshotParams(**common, snapshot=spec.options.get("snapshot"))
    if "snapshot" in spec.options:
        raise SandboxUnsupported("a sandbox starts from an `image` or from the option `snapshot`, not from both")
    resources = Resources(
        cpu=_whole("cpus", limits.cpus, 1, "cores"),
        memory=_whole("memory_mib", limits.memory_mib, 1024, "GiB"),
        disk=_whole("disk_mib", limits.disk_mib, 1024, "GiB"),
    )
    return CreateSandboxFromImageParams(**common, image=spec.image, resources=resources)


def allowed(hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The networks and the domains in an allow-list, as Daytona wants them apart. Raises SandboxUnsupported for a port."""
    networks, domains = [], []
    for host in hosts:
        try:
            networks.append(str(ipaddress.IPv4Network(host, strict=False)))
        except ValueError:
            if ":" in host or "/" in host:
                raise SandboxUnsupported(
                    f"allow: {host}: Daytona allows domains and IPv4 networks, all ports of them"
                ) from None
            domains.append(host)
    return networks, domains


def _whole(name: str, value: float | None, unit: int, what: str) -> int | None:
    if value is None:
        return None
    if value % unit:
        raise SandboxUnsupported(f"limits.{name}={value:g}: Daytona has whole {what} only")
    return int(value) // unit
