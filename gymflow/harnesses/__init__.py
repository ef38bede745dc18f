"""The contract of a harness: the loop that turns a model into an agent.

    class SingleTurn(Harness):
        async def run(self, episode: Episode) -> None:
            await episode.generate()

A harness is a coroutine over an `Episode`, which holds the history, routes tool calls, enforces budgets and records
everything; the harness decides only what comes next. It ends by returning; `episode.stop(reason)` says why. The module
holds exactly one Harness subclass whose name, in snake case, is the module's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from gymflow.contracts.environment import Manifest, Offer
from gymflow.paths import shipped
from gymflow.verifiers import BaseParameters

if TYPE_CHECKING:
    from gymflow.runtime.episode import Episode
    from gymflow.sandboxes.interface import Mount

__path__.append(str(shipped("harnesses")))

__all__ = ["BaseParameters", "Harness", "Lodging"]


@dataclass(frozen=True, slots=True)
class Lodging:
    """What a harness that works inside a sandbox must find there: files of this machine, and the way to its model."""

    mounts: "tuple[Mount, ...]"
    gateway: Path
    """Unix socket of the gateway; nothing else can be reached."""


class Harness:
    """One instance serves a whole run, concurrently; state of a rollout lives in the episode or in local variables."""

    needs: ClassVar[frozenset[Offer]] = frozenset({"messages"})
    uses: ClassVar[frozenset[Offer]] = frozenset()
    """What it makes use of where the environment offers it. A sandbox is started for a harness that needs or uses `shell`."""
    version: ClassVar[str] = "1"
    includes: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()
    licence: ClassVar[str] = "Apache-2.0"
    external_licence: ClassVar[str | None] = None

    class Parameters(BaseParameters):
        """No parameters."""

    def __init__(self, parameters: BaseModel | None = None) -> None:
        self.parameters: Any = parameters if parameters is not None else self.Parameters()

    @classmethod
    def missing(cls) -> str | None:
        """What it needs that is not installed, by name and version; None: nothing."""
        return None

    @classmethod
    def install(cls, say: Callable[[str], None]) -> None:
        """Install what is missing. `say` is told what happens. Raises InputError."""

    async def preflight(self, manifest: Manifest) -> None:
        """Before a run: find out what would keep it from playing this environment here. Raises InputError."""

    def lodging(self) -> Lodging | None:
        """What the sandbox of an episode has to have for it; asked between `open` and `close`."""
        return None

    async def open(self) -> None:
        """Called before the first `run`."""

    async def close(self) -> None:
        """Idempotent."""

    async def run(self, episode: "Episode") -> None:
        """Play one episode to its end."""
        raise NotImplementedError
