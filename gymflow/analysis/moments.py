"""A rollout in the order in which it is read: turn by turn, each thing once.

The items that a turn's call adds to the history are told with it, except those that the turn before has told already as outputs
of its tools or as the environment's messages.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gymflow.analysis.wording import Item, parts
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import ModelCall, Step, ToolCall, Turn


@dataclass(frozen=True, slots=True)
class Moment:
    """A turn with the calls that were made in it; a call without a turn is one that was not answered."""

    index: int | None
    turn: Turn | None
    calls: list[ModelCall]
    shown: list[Item]
    """Items that the moment before has told."""

    @property
    def title(self) -> str:
        """What it is called: `turn 3`, with what is particular about it."""
        if self.index is None:
            return "calls outside of a turn"
        if self.turn is None:
            return f"turn {self.index}, not finished"
        return f"turn {self.index}" + (f", invocation {self.turn.invocation}" if self.turn.invocation else "")

    def unseen(self, call: ModelCall) -> list[Item]:
        """What a call adds to the history and was not told yet."""
        return [item for item in call.new_input if not any(_same(item, one) for one in self.shown)]


def moments(record: RolloutRecord) -> Iterator[Moment]:
    """Turns and calls in order. Calls of other roles belong to the turn that they were made in."""
    turns = {turn.index: turn for turn in record.evidence.trajectory.turns}
    calls: dict[int | None, list[ModelCall]] = {}
    owner = turn_of_call(record)
    for call in record.model_calls:
        calls.setdefault(owner.get(call.index), []).append(call)
    shown = messages(record.evidence.trajectory.start)
    for index in sorted({*turns, *(index for index in calls if index is not None)}):
        turn = turns.get(index)
        yield Moment(index, turn, calls.get(index, []), shown)
        shown = outputs(tools(turn)) + messages(turn.step if turn else None)
    if None in calls:
        yield Moment(None, None, calls[None], [])


def turn_of_call(record: RolloutRecord) -> dict[int, int | None]:
    """By the index of a call the turn that it is told with; None: none."""
    owner = {turn.model_call: turn.index for turn in record.evidence.trajectory.turns if turn.model_call is not None}
    return {call.index: owner.get(call.index, call.turn) for call in record.model_calls}


def said(call: ModelCall) -> list[tuple[str, str]]:
    """Who and what, of a call's output."""
    return [part for item in call.output for part in parts(item)]


def tools(turn: Turn | None) -> list[ToolCall]:
    """The tool calls of a turn, if there is one."""
    return turn.tool_calls if turn is not None else []


def messages(step: Step | None) -> list[Item]:
    """What the environment said, if it did."""
    return step.messages if step is not None else []


def outputs(called: Iterable[ToolCall]) -> list[Item]:
    """The outputs of tool calls as items of the history."""
    return [{"type": "function_call_output", "call_id": one.call_id, "output": one.output} for one in called]


def _same(item: Item, shown: Item) -> bool:
    if item.get("type") == "function_call_output":
        return shown.get("type") == item["type"] and shown.get("call_id") == item.get("call_id")
    return item == shown
