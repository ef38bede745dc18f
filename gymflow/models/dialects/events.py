"""Server-sent events of a streamed answer, and the whole answer put together from them.

A stream that ends without saying so was cut: `Assembler.payload` raises, and nobody takes what arrived for a short answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from gymflow.models import wire
from gymflow.models.base import Dialect, Item
from gymflow.models.dialects import DialectError
from gymflow.models.dialects.chat import REASONING_FIELDS


class EventStream:
    """Cuts bytes as they arrive into events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, str]]:
        """Each whole event as its bytes and its data; comments have no data."""
        self._rest += data
        if b"\r" in self._rest:
            self._rest = self._rest.replace(b"\r\n", b"\n")
        *events, self._rest = self._rest.split(b"\n\n")
        for event in events:
            lines = [line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:")]
            yield event + b"\n\n", b"\n".join(lines).decode("utf-8", "replace")


class Assembler(ABC):
    """Builds the answer that the endpoint would have given without streaming."""

    ended = False

    @abstractmethod
    def add(self, event: dict[str, Any]) -> None:
        """Take one event. Raises DialectError when it reports a failure."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """What the events amount to."""

    def payload(self) -> dict[str, Any]:
        """The whole answer. Raises DialectError when the stream was cut."""
        if not self.ended:
            raise DialectError("the stream broke off before the answer was complete")
        return self.whole()


class ResponsesAssembler(Assembler):
    """The last event of a Responses stream holds the whole response."""

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "error":
            raise DialectError(_words(event))
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._response = event.get("response") or {}
            self.ended = True

    def whole(self) -> dict[str, Any]:
        return self._response


class ChatAssembler(Assembler):
    """Chat streams deltas of one message, tool calls by index."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._message: Item = {"role": "assistant", "content": None}
        self._calls: dict[int, Item] = {}
        self._choice: dict[str, Any] = {"index": 0, "message": self._message, "finish_reason": None}

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            raise DialectError(_words(event))
        for name in ("id", "model", "created", "usage", "prompt_token_ids", "system_fingerprint"):
            if event.get(name) is not None:
                self._top[name] = event[name]
        for choice in event.get("choices") or ():
            self._add_choice(choice)

    def whole(self) -> dict[str, Any]:
        if self._calls:
            self._message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return {**self._top, "object": "chat.completion", "choices": [self._choice]}

    def _add_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name in ("content", "refusal", *REASONING_FIELDS):
            if delta.get(name):
                self._message[name] = (self._message.get(name) or "") + delta[name]
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        if choice.get("token_ids"):
            self._choice.setdefault("token_ids", []).extend(choice["token_ids"])
        if (choice.get("logprobs") or {}).get("content"):
            logprobs = self._choice.setdefault("logprobs", {"content": []})
            logprobs["content"] += choice["logprobs"]["content"]
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
            self.ended = True

    def _add_call(self, delta: Item) -> None:
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(delta.get("index", len(self._calls)), empty)
        if delta.get("id"):
            call["id"] = delta["id"]
        function = delta.get("function") or {}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""


class MessagesAssembler(Assembler):
    """Messages streams content blocks one after the other."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, Item] = {}
        self._inputs: dict[int, str] = {}

    def add(self, event: dict[str, Any]) -> None:
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "error":
            raise DialectError(_words(event))
        if kind == "message_start":
            self._message = dict(event["message"])
        elif kind == "content_block_start":
            self._blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._add_delta(index, event["delta"])
        elif kind == "message_delta":
            self._message.update(event.get("delta") or {})
            self._message["usage"] = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
        elif kind == "message_stop":
            self.ended = True

    def whole(self) -> dict[str, Any]:
        for index, text in self._inputs.items():
            try:
                self._blocks[index]["input"] = wire.loads(text or "{}")
            except ValueError as error:
                raise DialectError(f"the input of a tool call is not JSON: {error}") from error
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _add_delta(self, index: int, delta: Item) -> None:
        kind = delta.get("type")
        block = self._blocks[index]
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
        elif kind == "text_delta":
            block["text"] += delta["text"]
        elif kind == "thinking_delta":
            block["thinking"] += delta["thinking"]
        elif kind == "signature_delta":
            block["signature"] = (block.get("signature") or "") + delta["signature"]


ASSEMBLERS: dict[Dialect, type[Assembler]] = {
    "chat": ChatAssembler,
    "responses": ResponsesAssembler,
    "messages": MessagesAssembler,
}


def _words(event: dict[str, Any]) -> str:
    error = event.get("error") or event
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)
