"""Being an OpenAI Responses endpoint, without state on the server."""

import time
from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import uuid4

from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import Item, ModelRequest, ModelResponse
from gymflow.models.dialects import DialectError
from gymflow.models.dialects.serve_chat import finish_in_openai, sampling

_READ = frozenset(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "text",
        "reasoning",
        "temperature",
    }
    | {"top_p", "top_k", "max_output_tokens", "frequency_penalty", "presence_penalty", "stop", "seed"}
)
_DROPPED = frozenset(
    {"stream", "stream_options", "store", "include", "metadata", "client_metadata", "user", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention", "service_tier", "truncation", "background", "top_logprobs"}
)
"""About the transport and the caller's account; not passed on."""


def decode_request(body: dict[str, Any]) -> ModelRequest:
    """A request to `/responses`. Fields that are not known here end up in `extra`. Raises DialectError."""
    for stateful in ("previous_response_id", "conversation", "prompt"):
        if body.get(stateful):
            raise DialectError(f"`{stateful}` needs state on the server; send the whole history as `input`")
    given = body.get("input")
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        raise DialectError("`input` must be a string or a list")
    stop = body.get("stop")
    return ModelRequest(
        input=given,
        tools=body.get("tools") or [],
        instructions=body.get("instructions"),
        sampling=sampling(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            top_k=body.get("top_k"),
            max_output_tokens=body.get("max_output_tokens"),
            frequency_penalty=body.get("frequency_penalty"),
            presence_penalty=body.get("presence_penalty"),
            stop=[stop] if isinstance(stop, str) else stop,
        ),
        seed=body.get("seed"),
        tool_choice=body.get("tool_choice"),
        parallel_tool_calls=body.get("parallel_tool_calls"),
        text=body.get("text"),
        reasoning=body.get("reasoning"),
        extra={name: value for name, value in body.items() if name not in _READ and name not in _DROPPED},
    )


def encode_response(response: ModelResponse, model: str) -> dict[str, Any]:
    """The answer as a Responses object, its items with the fields that clients expect."""
    identifier = response.response_id or f"resp_{uuid4().hex}"
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish_in_openai(response))
    return {
        "id": identifier,
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [_encode_item(item, f"{identifier}_{position}") for position, item in enumerate(response.output)],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": encode_usage(response.usage),
    }


def encode_usage(usage: Usage) -> dict[str, Any] | None:
    """Responses' usage object; None where the endpoint reported nothing."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    prompt = {"cached_tokens": usage.cached_tokens or 0}
    if usage.cache_write_tokens is not None:
        prompt["cache_write_tokens"] = usage.cache_write_tokens
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": prompt,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def encode_stream(response: ModelResponse, model: str, body: dict[str, Any]) -> Iterator[bytes]:
    """The answer as server-sent events, in the order in which OpenAI sends them."""
    numbers = count()
    whole = encode_response(response, model)
    began = whole | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield event("response.created", numbers, response=began)
    yield event("response.in_progress", numbers, response=began)
    for index, item in enumerate(whole["output"]):
        yield from _item_events(item, index, numbers)
    yield event(f"response.{whole['status']}", numbers, response=whole)


def encode_error_events(status: int, words: str, code: str | None = None) -> bytes:
    """An error inside a stream. OpenAI's SDK acts on an event that has an `error`, Codex on `response.failed`; that comes second,
    as the SDK refuses one whose response it has not seen begin."""
    numbers = count()
    error = {"code": code or str(status), "message": words}
    failed = {"id": f"resp_{uuid4().hex}", "object": "response", "status": "failed", "error": error, "output": []}
    told = event("error", numbers, **error, param=None, error=error)
    return told + event("response.failed", numbers, response=failed)


def event(kind: str, numbers: "count[int]", **fields: Any) -> bytes:
    """A named server-sent event."""
    payload = wire.dumps({"type": kind, "sequence_number": next(numbers), **fields})
    return b"event: " + kind.encode() + b"\ndata: " + payload + b"\n\n"


def _item_events(item: Item, index: int, numbers: "count[int]") -> Iterator[bytes]:
    at = {"item_id": item["id"], "output_index": index}
    kind = item["type"]
    added = dict(item)
    if "status" in item:
        added["status"] = "in_progress"
    if kind == "message":
        added["content"] = []
    elif kind == "function_call":
        added["arguments"] = ""
    yield event("response.output_item.added", numbers, output_index=index, item=added)
    if kind == "function_call":
        yield event("response.function_call_arguments.delta", numbers, **at, delta=item["arguments"])
        name, arguments = item["name"], item["arguments"]
        yield event("response.function_call_arguments.done", numbers, **at, name=name, arguments=arguments)
    elif kind == "message":
        for position, part in enumerate(item["content"]):
            where = {**at, "content_index": position}
            field = "refusal" if part["type"] == "refusal" else "text"
            prefix = "response.refusal" if field == "refusal" else "response.output_text"
            extra: Item = {} if field == "refusal" else {"logprobs": []}
            yield event("response.content_part.added", numbers, **where, part=part | {field: ""})
            yield event(f"{prefix}.delta", numbers, **where, delta=part[field], **extra)
            yield event(f"{prefix}.done", numbers, **where, **{field: part[field]}, **extra)
            yield event("response.content_part.done", numbers, **where, part=part)
    yield event("response.output_item.done", numbers, output_index=index, item=item)


def _encode_item(item: Item, identifier: str) -> Item:
    kind = item.get("type", "message")
    prefix = {"message": "msg", "function_call": "fc", "reasoning": "rs"}.get(kind, "item")
    encoded: Item = {"id": f"{prefix}_{identifier}", **item}
    if kind in ("message", "function_call"):
        encoded.setdefault("status", "completed")
    if kind == "message":
        encoded["content"] = [
            {"annotations": [], "logprobs": [], **part} if part.get("type") == "output_text" else part
            for part in item.get("content") or ()
        ]
    return encoded
