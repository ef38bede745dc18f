"""The base of harnesses that are command lines of others: their real program, headless, in a sandbox, with our model and tools.

    class Mine(ForeignHarness):
        installation = Npm(Path(__file__).parent, package="mine", executable="node_modules/mine/cli.js")

        def job(self, visit: Visit) -> Job: ...             # how it is started: arguments, environment, configuration files
        def see(self, event: Event, seen: Seen) -> None: ...  # what one line of its event stream tells

It works in the environment's sandbox where there is one, else in an empty one of its own. Nothing is reachable from there but the
gateway: its model calls, which are the record of what happened, and the environment's tools over MCP.
"""

import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from gymflow.contracts.environment import Manifest, Offer
from gymflow.contracts.sandbox import SandboxSpec
from gymflow.errors import InputError
from gymflow.harnesses import BaseParameters, Harness, Lodging
from gymflow.models.server import GatewayServer
from gymflow.runtime.episode import Episode
from gymflow.runtime.foreign.installing import Node, Npm
from gymflow.runtime.foreign.playing import Play
from gymflow.runtime.foreign.protocol import Event, Job, Seen, Visit
from gymflow.runtime.mcp import McpEndpoints
from gymflow.runtime.sandboxing import episode_sandbox, require_sandboxes
from gymflow.sandboxes.interface import Mount, Sandbox

PLACE = "/opt/gymflow"
"""Where the sandbox sees the command line, Node, and the worker that runs it."""


class ForeignHarness(Harness, ABC):
    """A command line behind the worker protocol."""

    needs: ClassVar[frozenset[Offer]] = frozenset({"messages"})
    uses: ClassVar[frozenset[Offer]] = frozenset({"tools", "shell"})
    installation: ClassVar[Npm]

    class Parameters(BaseParameters):
        timeout_s: float = Field(
            3600.0, gt=0, description="Longest that it may work on a task; the run's wall time holds besides."
        )

        context_tokens: int | None = Field(
            None, ge=1024, description="Context window of the model, so that it compacts its history in time."
        )

    def __init__(self, parameters: Any = None) -> None:
        super().__init__(parameters)
        self._folder: Path | None = None
        self.endpoints = McpEndpoints()
        self.server = GatewayServer()

    @abstractmethod
    def job(self, visit: Visit) -> Job:
        """How it is started."""

    @abstractmethod
    def see(self, event: Event, seen: Seen) -> None:
        """Note what an event tells."""

    @classmethod
    def missing(cls) -> str | None:
        return None if cls.installation.ready else f"{cls.installation.package} {cls.installation.version}"

    @classmethod
    def install(cls, say: Callable[[str], None]) -> None:
        cls.installation.install(say)

    async def preflight(self, manifest: Manifest) -> None:
        self._require_installed()
        spec = SandboxSpec.model_validate(manifest.sandbox or {})
        if spec.network == "none":
            spec = spec.model_copy(update={"network": "gateway"})
        await require_sandboxes([spec])

    def _require_installed(self) -> None:
        if (missing := self.missing()) is not None:
            raise InputError(f"{missing} is not installed; `gym env prepare {self.installation.source.name}` does that")

    async def open(self) -> None:
        self._require_installed()
        self._folder = Path(tempfile.mkdtemp(prefix="gymflow-gateway-"))
        self.endpoints = McpEndpoints()
        self.server = GatewayServer(socket_path=self._folder / "socket", routes=self.endpoints.routes())
        await self.server.open()

    async def close(self) -> None:
        await self.server.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def lodging(self) -> Lodging:
        assert self._folder is not None, "open() comes first"
        mounts = [
            Mount(self.installation.folder, f"{PLACE}/agent"),
            Mount(Path(__file__).with_name("worker.py"), f"{PLACE}/worker.py"),
        ]
        if self.installation.needs_node:
            mounts.append(Mount(Node().folder, f"{PLACE}/node"))
        return Lodging(tuple(mounts), self._folder / "socket")

    @property
    def command(self) -> list[str]:
        """The start of its argument vector, inside."""
        return self.installation.argv(Path(PLACE, "agent"), Path(PLACE, "node"))

    async def run(self, episode: Episode) -> None:
        started = time.monotonic()
        async with self._sandbox(episode) as sandbox:
            await Play(self, episode, sandbox, f"{PLACE}/worker.py", started).run()

    @asynccontextmanager
    async def _sandbox(self, episode: Episode) -> AsyncIterator[Sandbox]:
        """The environment's, else one of its own whose use is recorded alike."""
        if episode.sandbox is not None:
            yield episode.sandbox
            return
        async with episode_sandbox(SandboxSpec(), (), labels={}, lodging=self.lodging()) as own:
            episode.trajectory.sandbox = own.used
            yield own
