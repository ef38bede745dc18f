"""Being an Anthropic Messages endpoint."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import FinishReason, Item, ModelRequest, ModelResponse
from gymflow.models.dialects import OWN, DialectError, own, parts_of, reasoning_text
from gymflow.models.dialects.messages import arguments_object, decode_blocks
from gymflow.models.dialects.serve_chat import sampling

_READ = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "top_k"}
    | {"stop_sequences", "output_config"}
)
_DROPPED = frozenset(
    {"stream", "metadata", "service_tier", "container", "context_management", "cache_control", "betas", "speed"}
    | {"inference_geo", "diagnostics", "thinking"}
)
"""About the transport, the caller's account and caching, or about how Claude thinks; not passed on to other models."""

_STOP: dict[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_TOOL_CHOICES = {"auto": "auto", "none": "none", "any": "required"}


def decode_request(body: dict[str, Any]) -> ModelRequest:
    """A request to `/v1/messages`. Fields that are not known here end up in `extra`. Raises DialectError."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise DialectError("`messages` must be a list")
    choice = body.get("tool_choice") or {}
    output = body.get("output_config") or {}
    wanted = output.get("format")
    system = "\n\n".join(part.get("text") or "" for part in parts_of(body.get("system")))
    return ModelRequest(
        input=[item for message in messages for item in decode_message(message)],
        instructions=system or None,
        tools=[_decode_tool(tool) for tool in body.get("tools") or ()],
        sampling=sampling(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            top_k=body.get("top_k"),
            max_output_tokens=body.get("max_tokens"),
            stop=body.get("stop_sequences"),
            reasoning_effort=output.get("effort"),
        ),
        tool_choice=_decode_tool_choice(choice),
        parallel_tool_calls=None
        if choice.get("disable_parallel_tool_use") is None
        else not choice["disable_parallel_tool_use"],
        text={"format": {"name": "output", **wanted}} if wanted else None,
        extra={name: value for name, value in body.items() if name not in _READ and name not in _DROPPED},
    )


def decode_message(message: Item) -> list[Item]:
    """The items of one message; also of role `system`, which Claude Code puts between the others."""
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return decode_blocks(parts_of(content))
    if role not in ("user", "system"):
        raise DialectError(f"there is no role {role!r}")
    if isinstance(content, str):
        return [{"type": "message", "role": role, "content": content}]
    items: list[Item] = []
    said: list[Item] = []
    for block in parts_of(content):
        if block.get("type") != "tool_result":
            said.append(_decode_block(block))
            continue
        given = block.get("content")
        output = given if isinstance(given, str) else [_decode_block(part) for part in parts_of(given)]
        result = {"type": "function_call_output", "call_id": block.get("tool_use_id") or "", "output": output}
        # OpenAI's dialects have no tool that failed, only an output that is not complete.
        items.append(result | ({"status": "incomplete"} if block.get("is_error") else {}))
    if said:
        items.append({"type": "message", "role": role, "content": said})
    return items


def encode_response(response: ModelResponse, model: str) -> dict[str, Any]:
    """The answer as a message."""
    return {
        "id": response.response_id or f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": encode_blocks(response.output),
        "stop_reason": _STOP[response.finish_reason],
        "stop_sequence": None,
        "usage": encode_usage(response.usage),
    }


def encode_blocks(output: list[Item]) -> list[Item]:
    """Output items as content blocks."""
    blocks: list[Item] = []
    for item in output:
        kind = item.get("type", "message")
        if kind == "reasoning":
            sealed, text = item.get("encrypted_content") or "", reasoning_text(item)
            if text or not sealed:
                blocks.append({"type": "thinking", "thinking": text, "signature": sealed})
            else:
                blocks.append({"type": "redacted_thinking", "data": sealed})
        elif kind == OWN:
            blocks.append(item["value"])
        elif kind == "function_call":
            block = {"type": "tool_use", "id": item["call_id"], "name": item["name"]}
            blocks.append(block | {"input": arguments_object(item["arguments"])})
        else:
            for part in parts_of(item.get("content")):
                blocks.append({"type": "text", "text": part.get("text") or part.get("refusal") or ""})
    return blocks


def encode_usage(usage: Usage) -> dict[str, int]:
    """The usage object, which clients require: tokens that nobody counted read as zero there."""
    read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    return {
        "input_tokens": max(0, (usage.prompt_tokens or 0) - read - written),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.completion_tokens or 0,
    }


def encode_stream(response: ModelResponse, model: str, body: dict[str, Any]) -> Iterator[bytes]:
    """The answer as server-sent events."""
    whole = encode_response(response, model)
    begun = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 0}}
    yield event("message_start", message=begun)
    for index, block in enumerate(whole["content"]):
        yield from _block_events(block, index)
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage=whole["usage"])
    yield event("message_stop")


def encode_error(status: int, words: str, code: str | None = None) -> dict[str, Any]:
    """An error in the shape that Anthropic's clients read."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    kinds |= {413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": words}}


def encode_error_events(status: int, words: str, code: str | None = None) -> bytes:
    """An error inside a stream."""
    return b"event: error\ndata: " + wire.dumps(encode_error(status, words, code)) + b"\n\n"


def event(kind: str, **fields: Any) -> bytes:
    """A named server-sent event."""
    return b"event: " + kind.encode() + b"\ndata: " + wire.dumps({"type": kind, **fields}) + b"\n\n"


def _block_events(block: Item, index: int) -> Iterator[bytes]:
    deltas: list[Item] = []
    empty = block
    if block["type"] == "text":
        empty = block | {"text": ""}
        deltas = [{"type": "text_delta", "text": block["text"]}]
    elif block["type"] == "tool_use":
        empty = block | {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": wire.dumps(block["input"]).decode()}]
    elif block["type"] == "thinking":
        empty = block | {"thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    yield event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield event("content_block_delta", index=index, delta=delta)
    yield event("content_block_stop", index=index)


def _decode_block(block: Item) -> Item:
    kind = block.get("type")
    if kind == "text":
        return {"type": "input_text", "text": block.get("text") or ""}
    if kind == "image":
        source = block.get("source") or {}
        if source.get("type") == "url":
            return {"type": "input_image", "image_url": source.get("url")}
        if source.get("type") == "base64":
            return {"type": "input_image", "image_url": f"data:{source.get('media_type')};base64,{source.get('data')}"}
    if not isinstance(kind, str):
        raise DialectError(f"there is no content of type {kind!r}")
    return own("messages", block)


def _decode_tool(tool: Item) -> Item:
    if tool.get("type") not in (None, "custom"):
        return own("messages", tool)
    decoded: Item = {"type": "function", "name": tool.get("name"), "parameters": tool.get("input_schema") or {}}
    if tool.get("description"):
        decoded["description"] = tool["description"]
    return decoded


def _decode_tool_choice(choice: Item) -> str | Item | None:
    kind = choice.get("type")
    if kind == "tool":
        return {"type": "function", "name": choice.get("name")}
    return None if kind is None else _TOOL_CHOICES.get(kind, kind)
