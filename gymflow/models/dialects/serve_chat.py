"""Being an OpenAI Chat Completions endpoint."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from gymflow.contracts.model import Sampling
from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import Item, ModelRequest, ModelResponse
from gymflow.models.dialects import DialectError, finish_of, function_call, parts_of, reasoning, reasoning_text
from gymflow.models.dialects.chat import REASONING_FIELDS, custom_call

_READ = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "top_k", "max_tokens"}
    | {"max_completion_tokens", "frequency_penalty", "presence_penalty", "stop", "seed", "reasoning_effort", "n"}
    | {"response_format", "verbosity"}
)
_DROPPED = frozenset(
    {"stream", "stream_options", "store", "metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier"}
    | {"logprobs", "top_logprobs", "return_token_ids"}
)
"""About the transport and the caller's account, or about what the gateway itself asks for; not passed on."""


def decode_request(body: dict[str, Any]) -> ModelRequest:
    """A request to `/chat/completions`. Fields that are not known here end up in `extra`. Raises DialectError."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise DialectError("`messages` must be a list")
    if body.get("n") not in (None, 1):
        raise DialectError("`n` must be 1: each answer is a call of its own")
    limit = body.get("max_completion_tokens")
    stop = body.get("stop")
    text: Item = {}
    if body.get("response_format"):
        text["format"] = _decode_format(body["response_format"])
    if body.get("verbosity"):
        text["verbosity"] = body["verbosity"]
    return ModelRequest(
        input=[item for message in messages for item in decode_message(message)],
        tools=[_decode_tool(tool) for tool in body.get("tools") or ()],
        sampling=sampling(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            top_k=body.get("top_k"),
            max_output_tokens=body.get("max_tokens") if limit is None else limit,
            frequency_penalty=body.get("frequency_penalty"),
            presence_penalty=body.get("presence_penalty"),
            reasoning_effort=body.get("reasoning_effort"),
            stop=[stop] if isinstance(stop, str) else stop,
        ),
        seed=body.get("seed"),
        tool_choice=_decode_tool_choice(body.get("tool_choice")),
        parallel_tool_calls=body.get("parallel_tool_calls"),
        text=text or None,
        extra={name: value for name, value in body.items() if name not in _READ and name not in _DROPPED},
    )


def decode_message(message: Item) -> list[Item]:
    """The items of one chat message."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else [_decode_part(part) for part in parts_of(content)]
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id") or "", "output": output}]
    if role in ("system", "developer", "user"):
        parts = content if isinstance(content, str) else [_decode_part(part) for part in parts_of(content)]
        return [{"type": "message", "role": role, "content": parts}]
    if role != "assistant":
        raise DialectError(f"there is no role {role!r}")
    items: list[Item] = [reasoning(message[name]) for name in REASONING_FIELDS if message.get(name)][:1]
    text = "".join(part.get("text") or "" for part in parts_of(content))
    said: list[Item] = [{"type": "output_text", "text": text}] if text else []
    if message.get("refusal"):
        said.append({"type": "refusal", "refusal": message["refusal"]})
    calls = message.get("tool_calls") or ()
    if said or not (calls or items):
        items.append({"type": "message", "role": "assistant", "content": said})
    for call in calls:
        if call.get("type") == "custom":
            items.append(custom_call(call))
            continue
        function = call.get("function") or {}
        items.append(function_call(call.get("id") or "", function.get("name") or "", function.get("arguments") or ""))
    return items


def encode_response(response: ModelResponse, model: str) -> dict[str, Any]:
    """The answer as a chat completion."""
    completion: dict[str, Any] = {
        "id": response.response_id or f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": encode_answer(response.output),
                "logprobs": None,
                "finish_reason": finish_in_openai(response),
            }
        ],
    }
    if usage := encode_usage(response.usage):
        completion["usage"] = usage
    return completion


def finish_in_openai(response: ModelResponse) -> str:
    """Why the answer ended, in the words of OpenAI's dialects: they have a content for refusals, and a reason only for an answer
    that was refused without one."""
    if response.finish_reason != "refusal":
        return response.finish_reason
    return "stop" if finish_of(response.output) == "refusal" else "content_filter"


def encode_answer(output: list[Item]) -> Item:
    """Output items as one assistant message; reasoning goes under both names that clients know."""
    answer: Item = {"role": "assistant", "content": None, "refusal": None}
    thoughts = "\n".join(reasoning_text(item) for item in output if item.get("type") == "reasoning")
    if thoughts:
        answer |= dict.fromkeys(REASONING_FIELDS, thoughts)
    parts = [part for item in output if item.get("type") == "message" for part in parts_of(item.get("content"))]
    text = "".join(part.get("text") or "" for part in parts)
    refused = "".join(part.get("refusal") or "" for part in parts)
    calls = [item for item in output if item.get("type") in ("function_call", "custom_tool_call")]
    answer["content"] = text if text or not (calls or refused) else None
    answer["refusal"] = refused or None
    if calls:
        answer["tool_calls"] = [_encode_call(item) for item in calls]
    return answer


def _encode_call(item: Item) -> Item:
    if item["type"] == "custom_tool_call":
        custom = {"name": item["name"], "input": item["input"]}
        return {"id": item["call_id"], "type": "custom", "custom": custom}
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def encode_usage(usage: Usage) -> dict[str, Any] | None:
    """Chat's usage object; None where the endpoint reported nothing."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    prompt = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}
    encoded: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
    if details := {name: value for name, value in prompt.items() if value is not None}:
        encoded["prompt_tokens_details"] = details
    if usage.reasoning_tokens is not None:
        encoded["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return encoded


def encode_stream(response: ModelResponse, model: str, body: dict[str, Any]) -> Iterator[bytes]:
    """The answer as server-sent events; usage only where it was asked for, as a chunk of its own surprises other clients."""
    completion = encode_response(response, model)
    base = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    message = completion["choices"][0]["message"]
    deltas: list[Item] = [{"role": "assistant", "content": ""}]
    deltas += [{name: message[name]} for name in (*REASONING_FIELDS, "content", "refusal") if message.get(name)]
    deltas += [{"tool_calls": [call | {"index": index}]} for index, call in enumerate(message.get("tool_calls") or ())]
    for delta in deltas:
        yield event(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    end = {"index": 0, "delta": {}, "finish_reason": completion["choices"][0]["finish_reason"]}
    yield event(base | {"choices": [end]})
    options = body.get("stream_options")
    if "usage" in completion and isinstance(options, dict) and options.get("include_usage"):
        yield event(base | {"choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def encode_error(status: int, words: str, code: str | None = None) -> dict[str, Any]:
    """An error in the shape that OpenAI's clients read."""
    kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": words, "type": kind, "param": None, "code": code}}


def encode_error_events(status: int, words: str, code: str | None = None) -> bytes:
    """An error inside a stream."""
    return event(encode_error(status, words, code))


def event(payload: Any) -> bytes:
    """An unnamed server-sent event."""
    return b"data: " + wire.dumps(payload) + b"\n\n"


def sampling(**values: Any) -> Sampling:
    """Sampling parameters of a request. Raises DialectError for values out of range."""
    try:
        return Sampling(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise DialectError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from error


def _decode_part(part: Item) -> Item:
    kind = part.get("type")
    if kind == "text":
        return {"type": "input_text", "text": part.get("text") or ""}
    if kind == "image_url":
        image = part["image_url"]
        image = {"url": image} if isinstance(image, str) else image
        return {"type": "input_image", "image_url": image.get("url")} | (
            {"detail": image["detail"]} if image.get("detail") else {}
        )
    if kind == "file":
        return {"type": "input_file", **part["file"]}
    if kind == "refusal":
        return {"type": "input_text", "text": part.get("refusal") or ""}
    return part


def _decode_tool(tool: Item) -> Item:
    function = tool.get("function")
    if tool.get("type") == "custom" and isinstance(tool.get("custom"), dict):
        return {"type": "custom", **tool["custom"]}
    if tool.get("type") != "function" or not isinstance(function, dict):
        raise DialectError(f"tools of type {tool.get('type')!r} are not supported")
    return {"type": "function", **function}


def _decode_tool_choice(choice: Any) -> str | Item | None:
    if not isinstance(choice, dict):
        return choice if isinstance(choice, str) else None
    if choice.get("type") == "function":
        return {"type": "function", "name": (choice.get("function") or {}).get("name")}
    if choice.get("type") == "custom":
        return {"type": "custom", "name": (choice.get("custom") or {}).get("name")}
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools") or {}
        tools = [
            {"type": "function", "name": (tool.get("function") or {}).get("name")} for tool in allowed.get("tools", ())
        ]
        return {"type": "allowed_tools", "mode": allowed.get("mode", "auto"), "tools": tools}
    raise DialectError(f"there is no tool choice of type {choice.get('type')!r}")


def _decode_format(wanted: Item) -> Item:
    if wanted.get("type") == "json_schema":
        return {"type": "json_schema", **(wanted.get("json_schema") or {})}
    return {"type": wanted.get("type")}
