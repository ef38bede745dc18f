"""The contract of an environment's session: the per-task state that an agent acts on.

    class Counter(Session):
        async def start(self) -> Observation:
            self.count = 0
            return Observation()

        async def tools(self) -> list[dict]:
            return [function_tool("increment", "Add one.", {})]

        async def call(self, tool: str, arguments: dict) -> ToolResult:
            self.count += 1
            return ToolResult(str(self.count))

        async def snapshot(self) -> Snapshot:
            return Snapshot({"count": self.count})

A session belongs to one rollout. Everything random in it comes from `self.seed`. An exception out of a session is an
infrastructure failure (`environment_error`); what the agent did wrong is a `ToolResult(error=True)` that it sees.
"""

from dataclasses import dataclass, field
from typing import Any

from gymflow.contracts.task import Task
from gymflow.paths import shipped

__path__.append(str(shipped("environments")))

__all__ = ["Observation", "Session", "Snapshot", "ToolResult", "function_tool"]


@dataclass(slots=True)
class Observation:
    """What the environment says: messages (Responses items), a step reward, and whether the episode is over."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    reward: float | None = None
    done: bool = False
    truncated: bool = False


@dataclass(slots=True)
class ToolResult:
    """What a tool call returned. `done` ends the episode after this call."""

    output: str
    error: bool = False
    reward: float | None = None
    done: bool = False


@dataclass(slots=True)
class Snapshot:
    """The final state as JSON, and files by name (bytes; the store keeps them by content)."""

    state: dict[str, Any]
    artifacts: dict[str, bytes] = field(default_factory=dict)


class Session:
    """Per-task state. The base class is the stateless session: no tools, nothing to say, nothing to snapshot."""

    def __init__(self, task: Task, *, seed: int, parameters: dict[str, Any] | None = None) -> None:
        self.task = task
        self.seed = seed
        self.parameters = parameters or {}

    async def start(self) -> Observation:
        """Set the state up. Returned messages are put behind the task's input."""
        return Observation()

    async def tools(self) -> list[dict[str, Any]]:
        """Responses function tools that `call` answers, beyond those in the task row."""
        return []

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Answer one tool call; only tools named by `tools()` or the task row arrive here."""
        raise NotImplementedError(f"{type(self).__name__} lists a tool {tool!r} that it does not answer")

    async def respond(self, message: str) -> Observation | None:
        """The environment's turn after an agent message without tool calls; None: it has nothing to say, the episode ends."""
        return None

    async def snapshot(self) -> Snapshot | None:
        """The final state; asked for also when the agent failed or ran out of budget."""
        return None

    async def close(self) -> None:
        """Release what was acquired; idempotent."""


def function_tool(
    name: str, description: str, properties: dict[str, Any], required: list[str] | None = None
) -> dict[str, Any]:
    """A Responses function tool. Without `required`, every property is."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": False}
