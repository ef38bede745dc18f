"""A foreign agent's trajectory: the gateway's calls say what happened, the MCP server and the agent's own events say when.

Tool calls are those that the model asked for. One that came to us over MCP has the executor's times and result; another has the
times of the agent's events; where there are none, the time from the model's answer to the call that brought the output back.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from gymflow.contracts.trajectory import Invocation, ModelCall, Step, ToolCall, Trajectory, Turn
from gymflow.models import wire
from gymflow.runtime.foreign.calls import TurnCalls
from gymflow.runtime.foreign.protocol import Seen, ServedCall

CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")


def complete(
    trajectory: Trajectory, calls: Sequence[ModelCall], counted: TurnCalls, seen: Seen, served: Sequence[ServedCall]
) -> None:
    """Fill in what a rollout's turns did: tool calls, rewards, subagents and compactions."""
    _Completion(trajectory, calls, counted, seen, list(served)).run()


class _Completion:
    def __init__(
        self,
        trajectory: Trajectory,
        calls: Sequence[ModelCall],
        counted: TurnCalls,
        seen: Seen,
        served: list[ServedCall],
    ) -> None:
        self.trajectory, self.calls, self.counted, self.seen, self.served = trajectory, calls, counted, seen, served
        self.children: dict[int | None, list[ModelCall]] = {}
        for call in calls:
            self.children.setdefault(call.parent, []).append(call)

    def run(self) -> None:
        for call in self.calls:
            call.turn = None
        for index, turn in enumerate(self.trajectory.turns):
            turn.index = index
            assert turn.model_call is not None
            call = self.calls[turn.model_call]
            call.turn = index
            done: list[ServedCall] = []
            turn.tool_calls = [self._tool_call(item, call, done) for item in call.output if item.get("type") in CALLS]
            self._step(turn, done)
        self._unasked()
        self._branches()

    def _tool_call(self, item: dict[str, Any], call: ModelCall, done: list[ServedCall]) -> ToolCall:
        record = ToolCall(
            call_id=str(item.get("call_id") or ""),
            name=str(item.get("name") or ""),
            arguments=str(item.get("arguments") or item.get("input") or ""),
        )
        if (served := self._served(record)) is not None:
            done.append(served)
            return served.record.model_copy(update={"call_id": record.call_id, "arguments": record.arguments})
        answer, answered_by = self._answer(call, record.call_id)
        if (span := self.seen.spans.get(record.call_id)) is not None:
            record.started_at, record.ended_at = span.started_at, span.ended_at
            record.timing = "harness_event"
        elif answered_by is not None:
            record.started_at = call.started_at + call.queue_s + call.duration_s
            record.ended_at = max(record.started_at, answered_by.started_at)
            record.timing = "gateway"
        record.output = answer
        if answer is None:  # one that had begun was cut off
            record.status = "not_executed" if record.started_at is None else "error"
        elif span is None or span.failed:
            offered = self.counted.offered.get(call.index, frozenset())
            unknown = record.name not in offered and not item.get(
                "namespace"
            )  # tools of a namespace are listed inside it
            record.status = "unknown_tool" if unknown else "ok" if span is None else "error"
        return record

    def _served(self, record: ToolCall) -> ServedCall | None:
        """The call over MCP that this one became: the same tool, and the same id where the agent says it, else the same arguments."""
        arguments = _value(record.arguments)
        same = [served for served in self.served if _is_tool(record.name, served.record.name)]
        named = [served for served in same if record.call_id and record.call_id in served.meta.values()]
        for served in named or [one for one in same if _value(one.record.arguments) == arguments]:
            self.served.remove(served)
            return served
        return None

    def _answer(self, call: ModelCall, call_id: str) -> tuple[str | None, ModelCall | None]:
        """The output that the model was given for a call, and the model call that brought it."""
        later = [one for one in self.calls if one.index > call.index]
        for one in (*self.children.get(call.index, ()), *later):
            for item in one.new_input:
                if item.get("type") in OUTPUTS and item.get("call_id") == call_id:
                    return _text(item.get("output")), one
        return None, None

    def _unasked(self) -> None:
        """Calls over MCP that stand in no answer of the model, such as those of code that it wrote: the turn before them made them."""
        for served in self.served:
            started = served.record.started_at or 0.0
            before = [turn for turn in self.trajectory.turns if self._asked_at(turn) <= started]
            if before:
                before[-1].tool_calls.append(served.record)
                self._step(before[-1], [served])

    def _asked_at(self, turn: Turn) -> float:
        assert turn.model_call is not None
        return self.calls[turn.model_call].started_at

    def _step(self, turn: Turn, done: Iterable[ServedCall]) -> None:
        rewards = [one.reward for one in done if one.reward is not None]
        ended = any(one.done for one in done)
        if rewards or ended:
            before = turn.step or Step()
            turn.step = before.model_copy(
                update={"reward": sum(rewards) + (before.reward or 0.0) if rewards else before.reward, "done": ended}
            )

    def _branches(self) -> None:
        """Which loop each turn belongs to. A call continues the loop of the call that it extends."""
        invocations = self.trajectory.invocations
        by_spawner: dict[str, int] = {}
        by_call = {
            self.counted.answered[one]: spawner
            for one, spawner in self.seen.subagents.items()
            if one in self.counted.answered
        }
        compactions = sorted(self.seen.compactions)
        main = 0
        for call in self.calls:
            spawner = by_call.get(call.index)
            if spawner is not None:
                if spawner not in by_spawner:
                    by_spawner[spawner] = len(invocations)
                    invocations.append(
                        Invocation(index=len(invocations), kind="subagent", parent_turn=self._turn_of(spawner))
                    )
                call.invocation = by_spawner[spawner]
            elif call.parent is not None:
                call.invocation = self.calls[call.parent].invocation
            elif compactions and call.started_at >= compactions[0] and call.index:
                compactions = [at for at in compactions if at > call.started_at]
                before = [turn.index for turn in self.trajectory.turns if (turn.model_call or 0) < call.index]
                main = len(invocations)
                invocations.append(
                    Invocation(index=main, kind="compaction", parent_turn=before[-1] if before else None)
                )
                call.invocation = main
            else:
                call.invocation = main
        for turn in self.trajectory.turns:
            assert turn.model_call is not None
            turn.invocation = self.calls[turn.model_call].invocation

    def _turn_of(self, call_id: str) -> int | None:
        for turn in self.trajectory.turns:
            if any(one.call_id == call_id for one in turn.tool_calls):
                return turn.index
        return None


def _is_tool(asked: str, name: str) -> bool:
    """Whether the model's name for a tool is the environment's, behind the prefix that the agent gave it."""
    return asked == name or (asked.endswith(name) and not asked[-len(name) - 1].isalnum())


def _value(text: str) -> Any:
    try:
        return wire.loads(text or "{}")
    except ValueError:
        return text


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    parts = output if isinstance(output, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
