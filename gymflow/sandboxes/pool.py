"""How many sandboxes of this process run at one time, and how one is borrowed."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes.errors import SandboxUnsupported
from gymflow.sandboxes.interface import KEEP_BYTES, Command, ExecResult, Mount, Provider, Sandbox
from gymflow.sandboxes.registry import provider

CONCURRENCY = "GYMFLOW_SANDBOXES"
"""Environment variable: sandboxes at one time in this process. Default: two a core, at least eight."""

NO_GATEWAY = (
    "network: gateway is for harnesses that work inside the sandbox; nothing here would carry it to the model gateway: "
    "--set sandbox.network=none"
)

_pools: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pool]]" = WeakKeyDictionary()


class Pool:
    """A bound on the sandboxes of one provider. The first one that is started cleans up after killed runs."""

    def __init__(self, source: Provider, limit: int) -> None:
        self.provider = source
        self._places = asyncio.Semaphore(limit)
        self._cleaned: asyncio.Task[int] | None = None

    @contextlib.asynccontextmanager
    async def sandbox(
        self,
        spec: SandboxSpec,
        *,
        labels: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        gateway: Path | None = None,
    ) -> AsyncIterator[Sandbox]:
        """A started sandbox, removed at the end of the block also when the block is cancelled."""
        async with self.place():
            sandbox = await self.provider.start(spec, labels=labels, mounts=mounts, gateway=gateway)
            try:
                yield sandbox
            finally:
                await asyncio.shield(sandbox.stop())

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[Provider]:
        """A place for one sandbox."""
        if self._cleaned is None:
            self._cleaned = asyncio.ensure_future(self.provider.clean())
            # That it failed does not matter here: whoever starts a sandbox is told why none can be had.
            self._cleaned.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({self._cleaned})
        async with self._places:
            yield self.provider


def pool(name: str) -> Pool:
    """This event loop's pool of a provider."""
    pools = _pools.setdefault(asyncio.get_running_loop(), {})
    source = provider(name)
    if name not in pools or pools[name].provider is not source:
        pools[name] = Pool(source, int(os.environ.get(CONCURRENCY) or max(8, 2 * (os.cpu_count() or 1))))
    return pools[name]


def open_sandbox(
    spec: SandboxSpec,
    *,
    labels: Mapping[str, str] | None = None,
    mounts: Sequence[Mount] = (),
    gateway: Path | None = None,
) -> contextlib.AbstractAsyncContextManager[Sandbox]:
    """A sandbox out of this process's pool. Raises SandboxUnsupported for `network: gateway` without one."""
    if spec.network == "gateway" and gateway is None:
        raise SandboxUnsupported(NO_GATEWAY)
    return pool(spec.provider).sandbox(spec, labels=labels, mounts=mounts, gateway=gateway)


async def run_once(
    spec: SandboxSpec,
    command: Command,
    *,
    files: Mapping[str, bytes] | None = None,
    mounts: Sequence[Mount] = (),
    stdin: bytes | None = None,
    timeout_s: float = 60.0,
    keep_bytes: int = KEEP_BYTES,
) -> ExecResult:
    """One command in a fresh sandbox out of this process's pool. Raises SandboxUnsupported for `network: gateway`."""
    if spec.network == "gateway":
        raise SandboxUnsupported(NO_GATEWAY)
    async with pool(spec.provider).place() as source:
        return await source.run(
            spec, command, files=files, mounts=mounts, stdin=stdin, timeout_s=timeout_s, keep_bytes=keep_bytes
        )
