"""The wire formats that models are spoken to in, as pure functions.

`chat`, `responses` and `messages` call an endpoint: `encode_request` and `decode_response`. `serve_chat`, `serve_responses` and
`serve_messages` are one: `decode_request`, `encode_response` and `encode_stream`. What they meet in is `ModelRequest` and
`ModelResponse`, whose items are those of OpenAI's Responses API; a conversion between two dialects is a decoding followed by an
encoding.
"""

from collections.abc import Iterable
from typing import Any

from gymflow.models.base import Dialect, FinishReason, Item

OWN = "own"
"""The type of what `own` keeps."""


class DialectError(ValueError):
    """A request that the dialect cannot express, or an answer that is not of the dialect. The message says which part."""


class Interrupted(DialectError):
    """An answer that did not come to its end, or that the endpoint itself calls failed: asking again may help."""


def message(text: str) -> Item:
    """An assistant message."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def refusal(text: str) -> Item:
    """An assistant message that refuses."""
    return {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": text}]}


def reasoning(text: str) -> Item:
    """Reasoning that the endpoint shows as text."""
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def function_call(call_id: str, name: str, arguments: str) -> Item:
    """A tool call; `arguments` is the JSON text as the model wrote it."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def own(dialect: Dialect, value: Item) -> Item:
    """A part, an item or a tool that only one dialect has, kept as it is for endpoints that speak it."""
    return {"type": OWN, "dialect": dialect, "value": value}


def reasoning_text(item: Item) -> str:
    """The readable text of a reasoning item: its content, else its summary."""
    parts = item.get("content") or item.get("summary") or ()
    return "\n".join(part.get("text") or "" for part in parts)


def parts_of(content: Any) -> list[Item]:
    """A message's content as a list of parts."""
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def finish_of(output: Iterable[Item]) -> FinishReason:
    """The reason that the output itself shows, for endpoints that name none."""
    reason: FinishReason = "stop"
    for item in output:
        if item.get("type") == "function_call":
            return "tool_calls"
        if any(part.get("type") == "refusal" for part in item.get("content") or () if isinstance(part, dict)):
            reason = "refusal"
    return reason
