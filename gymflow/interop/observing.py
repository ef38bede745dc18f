"""Calls that a format kept with their whole input, stored the way we store them: each with what is new, and the call before it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gymflow.contracts.trajectory import ModelCall, Step, ToolCall, Trajectory, Turn, Usage
from gymflow.interop.rebuilding import Item, is_own, text_of
from gymflow.items import function_calls
from gymflow.models.client import tools_digest
from gymflow.models.history import History


class Observer:
    """Takes calls in the order in which they were made."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self._histories: dict[str, History] = {}

    def add(
        self,
        given: list[Item],
        output: list[Item],
        *,
        instructions: str | None = None,
        tools: list[Item] | None = None,
        usage: Usage | None = None,
        role: str = "policy",
        **known: Any,
    ) -> ModelCall:
        """One call: `given` is all that it saw. `known`: further fields of its record; `model` and `started_at` are needed."""
        history = self._histories.setdefault(role, History())
        place = history.place(given, instructions)
        parent = None if place.parent is None else place.parent.index
        new = given[place.covered :]
        call = ModelCall(
            index=len(self.calls),
            role=role,
            parent=parent,
            new_input=new,
            instructions=instructions if parent is None else None,
            tools_digest=tools_digest(tools or []),
            output=output,
            usage=usage or Usage(),
            **known,
        )
        self.calls.append(call)
        if call.status == "ok":
            history.add(call.index, place.parent, new, output, instructions)
        return call

    def trajectory(self, times: Mapping[str, tuple[float | None, float | None]] | None = None) -> Trajectory:
        """A turn for each answered call of the agent; tool outputs and messages are what later calls saw of them. `times`: start
        and end of tool calls by call id, seconds since the epoch."""
        trajectory = Trajectory()
        turn_of: dict[int, Turn] = {}
        open_calls: dict[str, ToolCall] = {}
        for call in self.calls:
            if call.role != "policy" or call.status != "ok":
                continue
            if call.parent in turn_of:
                self._answer(call, turn_of[call.parent], open_calls)
            turn = Turn(index=len(trajectory.turns), model_call=call.index, invocation=call.invocation)
            call.turn = turn.index
            for item in function_calls(call.output):
                asked = ToolCall(
                    call_id=str(item.get("call_id") or ""),
                    name=str(item.get("name") or ""),
                    arguments=str(item.get("arguments") or ""),
                    status="not_executed",
                )
                asked.started_at, asked.ended_at = (times or {}).get(asked.call_id, (None, None))
                turn.tool_calls.append(asked)
                open_calls[asked.call_id] = asked
            trajectory.turns.append(turn)
            turn_of[call.index] = turn
        return trajectory

    @staticmethod
    def _answer(call: ModelCall, turn: Turn, open_calls: dict[str, ToolCall]) -> None:
        messages = []
        for item in call.new_input:
            if item.get("type") == "function_call_output":
                asked = open_calls.pop(str(item.get("call_id")), None)
                if asked is not None:
                    asked.output, asked.status = text_of(item.get("output")), "ok"
            elif not is_own(item):
                messages.append(item)
        if messages:
            turn.step = Step(messages=messages)


def seconds(value: Any) -> float | None:
    """Seconds since the epoch from a number or an ISO 8601 time; None for what is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return None


def iso(value: float) -> str:
    """ISO 8601 in UTC."""
    return datetime.fromtimestamp(value, UTC).isoformat()
