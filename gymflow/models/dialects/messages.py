"""Anthropic Messages (https://docs.claude.com/en/api/messages)."""

from typing import Any

from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import FinishReason, Item, ModelRequest, ModelResponse
from gymflow.models.dialects import OWN, DialectError, Interrupted, finish_of, function_call, own, parts_of, reasoning
from gymflow.models.dialects.checked import checked, count, details

DEFAULT_MAX_TOKENS = 8192
"""The API demands a limit; this one holds where the run sets none."""

_FINISH: dict[str | None, FinishReason] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}
MALFORMED = "malformed_arguments"
"""What text that a model wrote in place of an object is kept under."""
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def encode_request(request: ModelRequest, model: str, *, max_tokens: int = DEFAULT_MAX_TOKENS) -> dict[str, Any]:
    """The body of `POST /v1/messages`. Raises DialectError for what the API has no words for; it has no seed, which is left out."""
    sampling = request.sampling
    for name in ("frequency_penalty", "presence_penalty"):
        if getattr(sampling, name) is not None:
            raise DialectError(f"the Messages API has no {name}")
    system, rest = _leading_system(request)
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": sampling.max_output_tokens or max_tokens,
        "messages": encode_messages(rest),
    }
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_encode_tool(tool) for tool in request.tools]
        if choice := _encode_tool_choice(request):
            body["tool_choice"] = choice
    output: dict[str, Any] = {}
    wanted = (request.text or {}).get("format") or {}
    if wanted.get("type") == "json_schema":
        output["format"] = {"type": "json_schema", "schema": wanted.get("schema") or {}}
    elif wanted.get("type") not in (None, "text"):
        raise DialectError(f"the Messages API has no output format {wanted['type']!r}")
    if effort := sampling.reasoning_effort or (request.reasoning or {}).get("effort"):
        output["effort"] = effort
    for name, value in (
        ("output_config", output or None),
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("top_k", sampling.top_k),
        ("stop_sequences", sampling.stop),
    ):
        if value is not None:
            body[name] = value
    return body | sampling.extra | request.extra


def encode_messages(items: list[Item]) -> list[Item]:
    """Items as messages of alternating roles; everything one side says in a row is one message."""
    messages: list[Item] = []
    for item in items:
        role, blocks = _encode_item(item)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return messages


@checked
def decode_response(payload: dict[str, Any]) -> ModelResponse:
    """An answer of `/v1/messages`. Raises DialectError when it is none."""
    content = payload.get("content")
    if payload.get("type") == "error" or not isinstance(content, list):
        raise Interrupted("the answer has no content")
    output = decode_blocks(content)
    return ModelResponse(
        output=output,
        finish_reason=_FINISH.get(payload.get("stop_reason")) or finish_of(output),
        usage=decode_usage(payload.get("usage")),
        reported_model=payload.get("model"),
        response_id=payload.get("id"),
    )


def decode_blocks(blocks: list[Item]) -> list[Item]:
    """The items of an assistant's content blocks; texts in a row are parts of one message."""
    output: list[Item] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            part = {"type": "output_text", "text": block.get("text") or ""}
            if output and output[-1]["type"] == "message":
                output[-1]["content"].append(part)
            else:
                output.append({"type": "message", "role": "assistant", "content": [part]})
        elif kind == "tool_use":
            given = block.get("input") or {}
            # Text: what was streamed of an input that is no JSON, such as one that the output limit cut.
            arguments = given if isinstance(given, str) else wire.dumps(given).decode()
            output.append(function_call(block.get("id") or "", block.get("name") or "", arguments))
        elif kind == "thinking":
            thought = reasoning(block.get("thinking") or "")
            output.append(thought | ({"encrypted_content": block["signature"]} if block.get("signature") else {}))
        elif kind == "redacted_thinking":
            output.append({"type": "reasoning", "summary": [], "encrypted_content": block.get("data")})
        elif isinstance(kind, str):
            output.append(own("messages", block))
        else:
            raise DialectError(f"there is no block of type {kind!r}")
    return output


def decode_usage(usage: Any) -> Usage:
    """Token counts. The API counts cached tokens apart; here `prompt_tokens` is the whole prompt."""
    if not isinstance(usage, dict):
        return Usage()
    plain, read = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Usage(
        prompt_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        completion_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(details(usage, "output_tokens_details").get("thinking_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
    )


def arguments_object(arguments: Any) -> dict[str, Any]:
    """Tool arguments as the object that the API wants; text that is none is kept under a name that says so."""
    try:
        value = wire.loads(arguments or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {MALFORMED: arguments}


def _leading_system(request: ModelRequest) -> tuple[str, list[Item]]:
    texts = [request.instructions] if request.instructions else []
    rest = request.input
    while rest and rest[0].get("role") in ("system", "developer"):
        texts.append("\n".join(part.get("text") or "" for part in parts_of(rest[0].get("content"))))
        rest = rest[1:]
    return "\n\n".join(texts), rest


def _encode_item(item: Item) -> tuple[str, list[Item]]:
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "message" and role in ("user", "system", "developer", "assistant"):
        blocks = [block for part in parts_of(item.get("content")) if (block := _encode_part(part))]
        return "system" if role == "developer" else str(role), blocks
    if kind == "function_call":
        block = {"type": "tool_use", "id": item.get("call_id"), "name": item.get("name")}
        return "assistant", [block | {"input": arguments_object(item.get("arguments"))}]
    if kind == "function_call_output":
        output = item.get("output")
        content = output if isinstance(output, str) else [_encode_part(part) for part in parts_of(output)]
        result = {"type": "tool_result", "tool_use_id": item.get("call_id"), "content": content}
        return "user", [result | ({"is_error": True} if item.get("status") == "incomplete" else {})]
    if kind == "reasoning":
        return "assistant", _encode_reasoning(item)
    if kind == OWN and item["dialect"] == "messages":
        return "assistant", [item["value"]]
    raise DialectError(f"the Messages API has no items of type {kind!r}")


def _encode_reasoning(item: Item) -> list[Item]:
    """Only signed thinking is taken back by the API; what another model thought is left out."""
    sealed = item.get("encrypted_content")
    if not sealed:
        return []
    if not item.get("content"):
        return [{"type": "redacted_thinking", "data": sealed}]
    text = "".join(part.get("text") or "" for part in item["content"])
    return [{"type": "thinking", "thinking": text, "signature": sealed}]


def _encode_part(part: Item) -> Item | None:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text", "refusal"):
        text = part.get("text") or part.get("refusal")
        return {"type": "text", "text": text} if text else None
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        head, comma, data = part["image_url"].partition(";base64,")
        if comma and head.startswith("data:"):
            source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
        else:
            source = {"type": "url", "url": part["image_url"]}
        return {"type": "image", "source": source}
    if kind == OWN and part["dialect"] == "messages":
        return dict(part["value"])
    raise DialectError(f"the Messages API has no content of type {kind!r}")


def _encode_tool(tool: Item) -> Item:
    if tool.get("type", "function") != "function":
        raise DialectError(f"the Messages API has no tools of type {tool.get('type')!r}")
    encoded: Item = {"name": tool.get("name"), "input_schema": tool.get("parameters") or {"type": "object"}}
    if tool.get("description"):
        encoded["description"] = tool["description"]
    return encoded


def _encode_tool_choice(request: ModelRequest) -> Item | None:
    choice = request.tool_choice
    encoded: Item | None = None
    if isinstance(choice, str):
        encoded = {"type": _TOOL_CHOICES.get(choice, choice)}
    elif choice is not None:
        if choice.get("type") != "function":
            raise DialectError(f"the Messages API has no tool choice of type {choice.get('type')!r}")
        encoded = {"type": "tool", "name": choice.get("name")}
    if request.parallel_tool_calls is not None and (encoded or {}).get("type") != "none":
        encoded = (encoded or {"type": "auto"}) | {"disable_parallel_tool_use": not request.parallel_tool_calls}
    return encoded
