"""Server-sent events of a streamed answer, and the whole answer put together from them.

A stream that ends without saying so was cut: `Assembler.payload` raises, and nobody takes what arrived for a short answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from gymflow.models import wire
from gymflow.models.base import Dialect, Item
from gymflow.models.dialects import Interrupted
from gymflow.models.dialects.chat import REASONING_FIELDS


class EventStream:
    """Cuts bytes as they arrive into events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

    def __init__(self) -> None:
        self._rest = b""
        self._returned = False

    def feed(self, data: bytes) -> Iterator[tuple[bytes, str]]:
        """Each whole event as its bytes and its data, lines ended by `\\n`; comments have no data."""
        if self._returned and data.startswith(b"\n"):
            data = data[1:]  # the other half of a line end that was cut in two
        self._returned = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._rest += data
        *events, self._rest = self._rest.split(b"\n\n")
        for event in events:
            lines = [line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:")]
            yield event + b"\n\n", b"\n".join(lines).decode("utf-8", "replace")


class Assembler(ABC):
    """Builds the answer that the endpoint would have given without streaming."""

    ended = False

    @abstractmethod
    def add(self, event: dict[str, Any]) -> None:
        """Take one event. Raises Interrupted when it reports a failure."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """What the events amount to."""

    def payload(self) -> dict[str, Any]:
        """The whole answer. Raises Interrupted when the stream was cut."""
        if not self.ended:
            raise Interrupted("the stream broke off before the answer was complete")
        return self.whole()


class ResponsesAssembler(Assembler):
    """The last event of a Responses stream holds the whole response; where it leaves the output out, its items came before."""

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}
        self._items: list[Item] = []

    def add(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "error":
            raise Interrupted(_words(event))
        if kind == "response.output_item.done":
            self._items.append(event["item"])
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._response = event.get("response") or {}
            self.ended = True

    def whole(self) -> dict[str, Any]:
        if self._items and not self._response.get("output"):
            return {**self._response, "output": self._items}
        return self._response


class ChatAssembler(Assembler):
    """Chat streams deltas of one message, tool calls by index."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._message: Item = {"role": "assistant", "content": None}
        self._calls: list[tuple[int, Item]] = []
        self._choice: dict[str, Any] = {"index": 0, "message": self._message, "finish_reason": None}

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            raise Interrupted(_words(event))
        for name in ("id", "model", "created", "usage", "prompt_token_ids", "system_fingerprint", "weight_version"):
            if event.get(name) is not None:
                self._top[name] = event[name]
        for choice in event.get("choices") or ():
            self._add_choice(choice)

    def whole(self) -> dict[str, Any]:
        if self._calls:
            self._message["tool_calls"] = [call for _, call in sorted(self._calls, key=lambda one: one[0])]
        return {**self._top, "object": "chat.completion", "choices": [self._choice]}

    def _add_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name in ("content", "refusal", *REASONING_FIELDS):
            if piece := _piece(delta.get(name)):
                self._message[name] = (self._message.get(name) or "") + piece
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
        kind, text = ("custom", "input") if delta.get("custom") else ("function", "arguments")
        given = delta.get(kind) or {}
        call = self._call(delta.get("index"), delta.get("id"), given.get("name"))
        if delta.get("id"):
            call["id"] = delta["id"]
        call.setdefault("type", kind)
        said = call.setdefault(kind, {"name": "", text: ""})
        for name in ("name", text):
            piece = given.get(name) or ""
            said[name] += piece if isinstance(piece, str) else wire.dumps(piece).decode()

    def _call(self, index: Any, identifier: Any, name: Any) -> Item:
        """The call that a delta adds to. Some servers leave the index out, others give every call the same one; what begins a
        call names it."""
        indexed = type(index) is int
        if indexed:
            found = next((call for at, call in reversed(self._calls) if at == index), None)
            begins = bool(found and name and identifier and found["id"] not in ("", identifier))
        else:
            last = self._calls[-1][1] if self._calls else None
            same = (call for _, call in self._calls if call["id"] == identifier)
            found = next(same, None) if identifier else last
            begins = bool(found and name and not identifier)
        if found is not None and not begins:
            return found
        call: Item = {"id": ""}
        self._calls.append((index if indexed else len(self._calls), call))
        return call


class MessagesAssembler(Assembler):
    """Messages streams content blocks one after the other."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, Item] = {}
        self._inputs: dict[int, str] = {}

    def add(self, event: dict[str, Any]) -> None:
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "error":
            raise Interrupted(_words(event))
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
        if not self._message:
            raise Interrupted("the stream ended without a message")
        for index, text in self._inputs.items():
            try:
                self._blocks[index]["input"] = wire.loads(text or "{}")
            except ValueError:
                self._blocks[index]["input"] = text  # as the model wrote it: malformed, or cut by the output limit
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


def _piece(value: Any) -> str:
    """A piece of text; some servers send parts."""
    if isinstance(value, list):
        return "".join(part.get("text") or "" for part in value)
    return value if isinstance(value, str) else ""


def _words(event: dict[str, Any]) -> str:
    error = event.get("error") or event
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)
