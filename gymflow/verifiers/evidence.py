"""What a verifier reads of a rollout, parsed only as far as it is asked for.

Rescoring 100 000 rollouts must not parse 100 000 trajectories to look at their last line, so each part stays the JSON text
it is stored as until it is used.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.rollout import EvidenceRecord
from gymflow.contracts.trajectory import ToolCall, Trajectory
from gymflow.items import function_calls, output_text

if TYPE_CHECKING:
    from gymflow.verifiers.judging import Judge


T = TypeVar("T")


class _once(Generic[T]):
    """functools.cached_property without the lock of Python 3.11, which costs more than what it guards here."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value: T = self._function(instance)
        instance.__dict__[self._function.__name__] = value
        return value


class Evidence:
    """The evidence of one completed rollout."""

    def __init__(
        self,
        *,
        response: dict[str, Any] | str | bytes,
        trajectory: Trajectory | str | bytes | None = None,
        snapshot: dict[str, Any] | str | bytes | None = None,
        artifacts: dict[str, str] | str | bytes | None = None,
        stop_reason: StopReason | None = None,
        read_artifact: Callable[[str], bytes] | None = None,
    ) -> None:
        self._response = response
        self._trajectory = trajectory
        self._snapshot = snapshot
        self._artifacts = artifacts
        self._read_artifact = read_artifact
        self.stop_reason = stop_reason
        self.input: list[dict[str, Any]] = []
        """What the task asked, as rendered for the agent (Responses items)."""
        self.judge: Judge | None = None
        """The judge model, for verifiers that need one."""

    @classmethod
    def of(cls, record: EvidenceRecord, read_artifact: Callable[[str], bytes] | None = None) -> "Evidence":
        """Evidence of a rollout that has just ended."""
        return cls(
            response=record.response,
            trajectory=record.trajectory,
            snapshot=record.snapshot,
            artifacts=record.artifacts,
            stop_reason=record.trajectory.stop_reason,
            read_artifact=read_artifact,
        )

    @_once
    def response(self) -> dict[str, Any]:
        """`{"output": [...]}`: the output items of the last model call."""
        return _parsed(self._response) or {"output": []}

    @_once
    def trajectory(self) -> Trajectory:
        """Turns with their tool calls and the environment's steps."""
        if isinstance(self._trajectory, Trajectory):
            return self._trajectory
        return Trajectory.model_validate_json(self._trajectory or b"{}")

    @_once
    def snapshot(self) -> dict[str, Any] | None:
        """The session's final state, or None where the environment has none."""
        state: dict[str, Any] | None = _parsed(self._snapshot)
        return state

    @_once
    def artifacts(self) -> dict[str, str]:
        """Name -> content digest."""
        return _parsed(self._artifacts) or {}

    def read_artifact(self, name: str) -> bytes:
        """The bytes of an artifact by name."""
        if self._read_artifact is None:
            raise LookupError(f"no artifact store at hand to read {name!r} from")
        return self._read_artifact(self.artifacts[name])

    @_once
    def final_text(self) -> str:
        """Text of the assistant messages in the last model response, without reasoning; empty if it said nothing."""
        return output_text(self.response.get("output") or ())

    @property
    def final_tool_calls(self) -> list[dict[str, Any]]:
        """`function_call` items of the last model response (asked for, perhaps never executed)."""
        return function_calls(self.response.get("output") or ())

    @property
    def tool_calls(self) -> list[ToolCall]:
        """All tool calls of the main invocation and its subagents, in the order in which they were asked for."""
        return [call for turn in self.trajectory.turns for call in turn.tool_calls]


def _parsed(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, str | bytes) else value
