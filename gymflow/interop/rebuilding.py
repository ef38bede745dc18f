"""Turns and model calls out of what was said in order, for formats that keep a conversation and not its calls."""

from collections.abc import Iterable
from typing import Any

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.trajectory import CallTokens, Gap, ModelCall, Step, ToolCall, Trajectory, Turn, Usage
from gymflow.items import function_calls

Item = dict[str, Any]

OWN_TYPES = ("function_call", "reasoning", "web_search_call", "file_search_call", "computer_call", "custom_tool_call")
"""Items that only a model writes."""


def is_own(item: Item) -> bool:
    """Whether an item is the model's."""
    kind = item.get("type", "message")
    return kind in OWN_TYPES or (kind == "message" and item.get("role", "assistant") == "assistant")


class Rebuilder:
    """Takes a conversation item by item, or answer by answer where the format tells them apart."""

    def __init__(
        self, given: list[Item], model: str, *, instructions: str | None = None, started_at: float = 0.0
    ) -> None:
        """`given`: what the first call was asked."""
        self.calls: list[ModelCall] = []
        self.trajectory = Trajectory()
        self._model = model
        self._instructions = instructions
        self._started_at = started_at
        self._new: list[Item] = list(given)
        self._open: dict[str, ToolCall] = {}
        self._unasked = 0

    def items(self, output: Iterable[Item]) -> None:
        """A whole conversation after the input: neighbouring items of the model are one answer."""
        answer: list[Item] = []
        for item in output:
            if is_own(item):
                answer.append(item)
                continue
            if answer:
                self.answer(answer)
                answer = []
            self.observe([item])
        if answer:
            self.answer(answer)

    def answer(
        self,
        output: list[Item],
        *,
        usage: Usage | None = None,
        tokens: CallTokens | None = None,
        **known: Any,
    ) -> ModelCall:
        """One answer of the model. `known`: further fields of its call, where the format has them."""
        turn = Turn(index=len(self.trajectory.turns), model_call=len(self.calls))
        for item in function_calls(output):
            call = ToolCall(
                call_id=str(item.get("call_id") or item.get("id") or ""),
                name=str(item.get("name") or ""),
                arguments=item["arguments"] if isinstance(item.get("arguments"), str) else "",
                status="not_executed",
            )
            turn.tool_calls.append(call)
            self._open[call.call_id] = call
        self.trajectory.turns.append(turn)
        parent = len(self.calls) - 1 if self.calls else None
        fields: dict[str, Any] = {"started_at": self._started_at, "model": self._model} | known
        call_record = ModelCall(
            index=len(self.calls),
            turn=turn.index,
            parent=parent,
            new_input=self._new,
            instructions=self._instructions if parent is None else None,
            output=output,
            usage=usage or Usage(),
            tokens=tokens,
            **fields,
        )
        self.calls.append(call_record)
        self._new = []
        return call_record

    def tokens(
        self, prompt: list[int] | None, completion: list[int] | None, logprobs: list[float | None] | None
    ) -> CallTokens | None:
        """The next call's ids, given whole: chained where they begin with those of the call before."""
        if not completion:
            return None
        prompt, before = prompt or [], token_ids(self.calls)
        chained = bool(before) and prompt[: len(before)] == before
        return CallTokens(
            chained=chained,
            prompt_token_ids=prompt[len(before) :] if chained else prompt,
            completion_token_ids=completion,
            logprobs=logprobs or [None] * len(completion),
        )

    def observe(self, items: list[Item], *, error: bool = False, times: tuple[float, float] | None = None) -> None:
        """What came back to the model: tool outputs, and messages of a user or an environment. An output that answers no open call
        is kept among the messages, and counted in a gap."""
        messages: list[Item] = []
        for item in items:
            call = (
                self._open.pop(str(item.get("call_id")), None) if item.get("type") == "function_call_output" else None
            )
            if call is not None:
                call.output = item["output"] if isinstance(item.get("output"), str) else text_of(item.get("output"))
                call.status = "error" if error else "ok"
                if times is not None:
                    call.started_at, call.ended_at = times
            else:
                messages.append(item)
                self._unasked += item.get("type") == "function_call_output"
        self._new = [*self._new, *items]
        if messages and self.trajectory.turns:
            turn = self.trajectory.turns[-1]
            turn.step = turn.step or Step()
            turn.step.messages.extend(messages)

    def finish(self, stop_reason: StopReason | None, gaps: Iterable[Gap]) -> Trajectory:
        """The trajectory, with why it ended and what it cannot show."""
        self.trajectory.stop_reason = stop_reason
        self.trajectory.gaps = [Gap(code="imported"), *gaps]
        if self._unasked:
            detail = f"{self._unasked} tool outputs answer no call that is shown; they stand among the messages"
            self.trajectory.gaps.append(Gap(code="no_tool_call", detail=detail))
        return self.trajectory


def token_ids(calls: Iterable[ModelCall]) -> list[int]:
    """Prompt and completion ids of the last of these calls, with what it continues; empty where one has none."""
    ids: list[int] = []
    for call in calls:
        if call.tokens is None:
            return []
        ids = [*(ids if call.tokens.chained else []), *call.tokens.prompt_token_ids, *call.tokens.completion_token_ids]
    return ids


def text_of(value: Any) -> str:
    """The text of content that may be a string or a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(part if isinstance(part, str) else str(part.get("text") or "") for part in value)
    return "" if value is None else str(value)


def message(text: str, role: str = "assistant") -> Item:
    """A message item."""
    if role != "assistant":
        return {"type": "message", "role": role, "content": text}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": role, "status": "completed", "content": content}


def conversation(calls: Iterable[ModelCall]) -> list[Item]:
    """Everything after the first call's input: answers, tool outputs and messages, in order. Of the agent's own calls only, and
    only those that were answered."""
    items: list[Item] = []
    first = True
    for call in calls:
        if call.role != "policy" or call.status != "ok":
            continue
        if not first:
            items += call.new_input
        items += call.output
        first = False
    return items
