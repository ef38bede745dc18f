"""What is stored of any rollout, asked the way people ask: what the model saw, what a turn was about, and what is not known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import ModelCall, ToolCall, Turn
from gymflow.items import output_text

Item = dict[str, Any]
Coverage = Literal["full", "partial", "none", "nothing to observe"]

CRITERIA = {
    "calls": "Every model call with model, response id or model reported, status, finish reason, start and duration",
    "tokens": "Prompt and completion tokens of every answered call",
    "turns": "Every turn with its question, answer, reasoning, whether it resolved, and its steps",
    "history": "The history that the model saw at every call, rebuilt exactly",
    "tools": "Every tool call with arguments, output, status, start, end, and who saw them",
    "parallel": "Parallel tool calls timed apart",
    "invocations": "Subagents and compactions, each with the turn that it came from",
    "sandbox": "Every command with outcome, exit code, CPU time and peak memory",
}


@dataclass(frozen=True, slots=True)
class TurnStory:
    """A turn as a question and an answer. `question` is what was new to the model; `resolved` says that the turn ended in a message
    or in tool calls of which none failed; `steps` counts its tool calls."""

    index: int
    invocation: int
    started_at: float | None
    question: str
    answer: str
    reasoning: str
    resolved: bool
    steps: int


def seen_at(calls: Sequence[ModelCall], index: int) -> list[Item]:
    """The history that a call saw: what its ancestors got and said, then what is new. LookupError where a link is missing."""
    by_index = {call.index: call for call in calls}
    path: list[ModelCall] = []
    at: int | None = index
    while at is not None:
        if at not in by_index or len(path) > len(calls):
            raise LookupError(f"call {at} is not recorded, so the history of call {index} is not known")
        path.append(by_index[at])
        at = by_index[at].parent
    items: list[Item] = []
    for call in reversed(path):
        items += call.new_input
        if call.index != index:
            items += call.output
    return items


def turn_stories(record: RolloutRecord) -> Iterator[TurnStory]:
    """The turns of a rollout, in order."""
    calls = {call.index: call for call in record.model_calls}
    for turn in record.evidence.trajectory.turns:
        call = calls.get(turn.model_call) if turn.model_call is not None else None
        output = call.output if call else []
        answer = output_text(output)
        yield TurnStory(
            index=turn.index,
            invocation=turn.invocation,
            started_at=call.started_at if call else None,
            question=_asked(call.new_input) if call else "",
            answer=answer,
            reasoning="\n".join(_reasoning(output)),
            resolved=all(one.status == "ok" for one in turn.tool_calls) and bool(answer or turn.tool_calls),
            steps=len(turn.tool_calls),
        )


def coverage(record: RolloutRecord) -> dict[str, Coverage]:
    """How much of each of the CRITERIA the evidence of this rollout shows."""
    trajectory, calls = record.evidence.trajectory, record.model_calls
    gaps = {gap.code for gap in trajectory.gaps}
    answered = [call for call in calls if call.status == "ok"]
    tools = [one for turn in trajectory.turns for one in turn.tool_calls]
    return {
        "calls": _of(calls, _described, "no_model_calls" in gaps),
        "tokens": _of(answered, _metered, bool(gaps & {"no_model_calls", "no_usage"})),
        "turns": _of(trajectory.turns, lambda turn: _told(turn, calls), "no_turns" in gaps),
        "history": _of(calls, lambda call: _rebuilt(calls, call.index), bool(gaps & {"no_model_calls", "no_history"})),
        "tools": _of(tools, _timed, bool(gaps & {"no_turns", "no_tool_timing"})),
        "parallel": _of(
            [turn for turn in trajectory.turns if len(turn.tool_calls) > 1], _apart, "no_tool_timing" in gaps
        ),
        "invocations": _of(
            [one for one in trajectory.invocations if one.kind != "main"],
            lambda one: one.parent_turn is not None,
            "no_turns" in gaps,
        ),
        "sandbox": _of(
            trajectory.sandbox,
            lambda used: None not in (used.exit_code, used.cpu_s, used.peak_memory_bytes),
            "no_sandbox_use" in gaps,
        ),
    }


def _of(things: Sequence[Any], shows: Any, gap: bool) -> Coverage:
    if not things:
        return "none" if gap else "nothing to observe"
    shown = sum(bool(shows(thing)) for thing in things)
    if shown == len(things) and not gap:
        return "full"
    return "partial" if shown else "none"


def _described(call: ModelCall) -> bool:
    said_by = call.status == "error" or call.reported_model or call.response_id
    return bool(call.model and said_by and (call.finish_reason or call.error_message) and call.started_at)


def _metered(call: ModelCall) -> bool:
    return call.usage.prompt_tokens is not None and call.usage.completion_tokens is not None


def _told(turn: Turn, calls: Sequence[ModelCall]) -> bool:
    call = next((call for call in calls if call.index == turn.model_call), None)
    return call is not None and bool(call.new_input) and bool(call.output)


def _rebuilt(calls: Sequence[ModelCall], index: int) -> bool:
    try:
        return bool(seen_at(calls, index))
    except LookupError:
        return False


def _timed(call: ToolCall) -> bool:
    return call.output is not None and call.started_at is not None and call.ended_at is not None


def _apart(turn: Turn) -> bool:
    """Each call has times of its own, not those of the turn."""
    times = {(one.started_at, one.ended_at) for one in turn.tool_calls}
    return all(_timed(one) for one in turn.tool_calls) and len(times) == len(turn.tool_calls)


def _asked(items: Sequence[Item]) -> str:
    texts = [_text(item) for item in items if item.get("role", "user") != "assistant"]
    return "\n".join(text for text in texts if text)


def _text(item: Item) -> str:
    content = item.get("content", item.get("output", ""))
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content or () if isinstance(part, dict))


def _reasoning(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "reasoning":
            for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
                if part.get("text"):
                    yield part["text"]
