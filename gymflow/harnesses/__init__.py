"""The contract of a harness: the loop that turns a model into an agent.

    class SingleTurn(Harness):
        async def run(self, episode: Episode) -> None:
            await episode.generate()

A harness is a coroutine over an `Episode`, which holds the history, routes tool calls, enforces budgets and records
everything; the harness decides only what comes next. It ends by returning; `episode.stop(reason)` says why. The module
holds exactly one Harness subclass whose name, in snake case, is the module's.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from gymflow.contracts.environment import Offer
from gymflow.paths import shipped
from gymflow.verifiers import BaseParameters

if TYPE_CHECKING:
    from gymflow.runtime.episode import Episode

__path__.append(str(shipped("harnesses")))

__all__ = ["BaseParameters", "Harness"]


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

    async def open(self) -> None:
        """Called before the first `run`."""

    async def close(self) -> None:
        """Idempotent."""

    async def run(self, episode: "Episode") -> None:
        """Play one episode to its end."""
        raise NotImplementedError
