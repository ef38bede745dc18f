"""OpenAI Chat Completions (https://platform.openai.com/docs/api-reference/chat), and the fields that vLLM adds to it."""

from typing import Any

from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import FinishReason, Item, ModelRequest, ModelResponse, TokenIds
from gymflow.models.dialects import (
    DialectError,
    Interrupted,
    finish_of,
    function_call,
    message,
    parts_of,
    reasoning,
    reasoning_text,
    refusal,
)
from gymflow.models.dialects.checked import checked, count, details, label, logprob, token_ids

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put reasoning text; it is handed back under the name that it came under."""

_FINISH: dict[str | None, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}


def encode_request(
    request: ModelRequest,
    model: str,
    *,
    reasoning_field: str = "reasoning_content",
    max_tokens_field: str = "max_tokens",
) -> dict[str, Any]:
    """The body of `POST /chat/completions`. Raises DialectError for items and tools that chat does not have."""
    body: dict[str, Any] = {
        "model": model,
        "messages": encode_messages(request.input, request.instructions, reasoning_field),
    }
    if request.tools:
        body["tools"] = [encode_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _encode_tool_choice(request.tool_choice)
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    sampling = request.sampling
    for name, value in (
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("top_k", sampling.top_k),
        (max_tokens_field, sampling.max_output_tokens),
        ("frequency_penalty", sampling.frequency_penalty),
        ("presence_penalty", sampling.presence_penalty),
        ("reasoning_effort", sampling.reasoning_effort or (request.reasoning or {}).get("effort")),
        ("stop", sampling.stop),
        ("seed", request.seed),
    ):
        if value is not None:
            body[name] = value
    if request.text:
        _encode_text(request.text, body)
    return body | sampling.extra | request.extra


def encode_messages(
    items: list[Item], instructions: str | None = None, reasoning_field: str = "reasoning_content"
) -> list[Item]:
    """Items as chat messages. Reasoning, text and calls of one answer become one assistant message."""
    messages: list[Item] = [{"role": "system", "content": instructions}] if instructions else []
    answer: Item | None = None
    for item in items:
        kind = item.get("type", "message")
        role = item.get("role")
        if kind == "message" and role != "assistant":
            answer = None
            if role not in _ROLES:
                raise DialectError(f"chat has no role {role!r}")
            messages.append({"role": _ROLES[role], "content": _encode_content(item.get("content"))})
        elif kind == "function_call_output":
            answer = None
            content = _encode_content(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})
        elif kind in ("message", "function_call", "reasoning"):
            if answer is None or _begins_anew(answer, kind, reasoning_field):
                answer = {"role": "assistant", "content": None}
                messages.append(answer)
            _add(answer, kind, item, reasoning_field)
        else:
            raise DialectError(
                f"chat has no items of type {kind!r}; an endpoint that has them is called with `api: responses`"
            )
    for entry in messages:
        # Only an answer that calls tools may have no content.
        if entry["content"] is None and "tool_calls" not in entry:
            entry["content"] = ""
    return messages


@checked
def decode_response(payload: dict[str, Any]) -> ModelResponse:
    """An answer of `/chat/completions`. Raises DialectError when there is no choice in it."""
    choices = payload.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Interrupted("the answer has no choices")
    choice = choices[0]
    answer = choice.get("message")
    if not isinstance(answer, dict):
        raise Interrupted("the answer's choice has no message")
    output = decode_answer(answer)
    reason = choice.get("finish_reason")
    if reason in ("error", "abort"):
        raise Interrupted(f"the endpoint broke off: finish_reason {reason!r}")
    finish = _FINISH.get(reason) or finish_of(output)
    if finish == "stop":
        # Some servers say `stop` beside tool calls, and all of them beside a refusal.
        finish = finish_of(output)
    return ModelResponse(
        output=output,
        finish_reason=finish,
        usage=decode_usage(payload.get("usage")),
        reported_model=payload.get("model"),
        response_id=payload.get("id"),
        tokens=_token_ids(payload, choice),
    )


def decode_answer(answer: Item) -> list[Item]:
    """The items of one assistant message."""
    output: list[Item] = []
    for name in REASONING_FIELDS:
        if isinstance(answer.get(name), str) and answer[name]:
            output.append(reasoning(answer[name]))
            break
    content = answer.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    if content:
        output.append(message(content))
    if answer.get("refusal"):
        output.append(refusal(answer["refusal"]))
    for call in answer.get("tool_calls") or ():
        if call.get("type") == "custom":
            output.append(custom_call(call))
            continue
        function = call.get("function") or {}
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else wire.dumps(arguments).decode()
        output.append(function_call(call.get("id") or "", function.get("name") or "", arguments))
    return output


def custom_call(call: Item) -> Item:
    """A call of a tool that takes free text."""
    custom = call.get("custom") or {}
    named = {"call_id": call.get("id") or "", "name": custom.get("name") or ""}
    return {"type": "custom_tool_call", **named, "input": custom.get("input") or ""}


def decode_usage(usage: Any) -> Usage:
    """Token counts; what the endpoint does not report stays None."""
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion = details(usage, "prompt_tokens_details"), details(usage, "completion_tokens_details")
    cached = prompt.get("cached_tokens")
    return Usage(
        prompt_tokens=count(usage.get("prompt_tokens")),
        completion_tokens=count(usage.get("completion_tokens")),
        reasoning_tokens=count(completion.get("reasoning_tokens")),
        cached_tokens=count(usage.get("prompt_cache_hit_tokens") if cached is None else cached),
        cache_write_tokens=count(prompt.get("cache_write_tokens")),
    )


def _begins_anew(answer: Item, kind: str, reasoning_field: str) -> bool:
    """Whether an item cannot belong to the answer before it: reasoning comes first, and text is not said twice."""
    if kind == "reasoning":
        return answer["content"] is not None or "tool_calls" in answer
    return kind == "message" and answer["content"] is not None and "tool_calls" not in answer


def _add(answer: Item, kind: str, item: Item, reasoning_field: str) -> None:
    if kind == "reasoning":
        text = reasoning_text(item)
        if text:
            answer[reasoning_field] = f"{answer[reasoning_field]}\n{text}" if reasoning_field in answer else text
    elif kind == "function_call":
        function = {"name": item.get("name"), "arguments": wire_arguments(item.get("arguments"))}
        answer.setdefault("tool_calls", []).append(
            {"id": item.get("call_id"), "type": "function", "function": function}
        )
    else:
        parts = parts_of(item.get("content"))
        text = "".join(part.get("text") or "" for part in parts)
        refused = "".join(part.get("refusal") or "" for part in parts)
        if text or not refused:
            answer["content"] = text if answer["content"] is None else f"{answer['content']}\n{text}"
        if refused:
            answer["refusal"] = refused


def wire_arguments(arguments: Any) -> str:
    """Arguments that an endpoint will accept in a history. Servers whose template reads them as an object answer 400 to text
    that a model left malformed, which would fail the rollout for what was the agent's doing."""
    text = arguments if isinstance(arguments, str) else ""
    try:
        if isinstance(wire.loads(text or "{}"), dict):
            return text or "{}"
    except ValueError:
        pass
    return wire.dumps({"malformed_arguments": text}).decode()


def _encode_content(content: Any) -> Any:
    """A string where there is one text, else chat's content parts."""
    if isinstance(content, str):
        return content
    parts = [_encode_part(part) for part in parts_of(content)]
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _encode_part(part: Item) -> Item:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": part.get("text") or ""}
    if kind == "input_image":
        if not part.get("image_url"):
            raise DialectError("chat takes images by URL or data URL, not by file id")
        image = {"url": part["image_url"]} | ({"detail": part["detail"]} if part.get("detail") else {})
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        return {
            "type": "file",
            "file": {key: part[key] for key in ("file_id", "file_data", "filename") if part.get(key)},
        }
    if kind == "refusal":
        return {"type": "text", "text": part.get("refusal") or ""}
    if kind in ("input_audio", "image_url", "file"):
        return part
    raise DialectError(f"chat has no content of type {kind!r}")


def encode_tool(tool: Item) -> Item:
    """A function tool; its schema is shared with the item, not copied."""
    if tool.get("type", "function") != "function":
        raise DialectError(f"chat has no tools of type {tool.get('type')!r}")
    function = {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}
    return {"type": "function", "function": function}


def _encode_tool_choice(choice: str | Item) -> str | Item:
    if isinstance(choice, str):
        return choice
    if choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if choice.get("type") == "allowed_tools":
        allowed = [{"type": "function", "function": {"name": tool.get("name")}} for tool in choice.get("tools") or ()]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": allowed}}
    raise DialectError(f"chat has no tool choice of type {choice.get('type')!r}")


def _encode_text(text: Item, body: dict[str, Any]) -> None:
    wanted = text.get("format") or {}
    if wanted.get("type") == "json_schema":
        schema = {
            key: wanted[key] for key in ("name", "description", "schema", "strict") if wanted.get(key) is not None
        }
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif wanted.get("type") not in (None, "text"):
        body["response_format"] = {"type": wanted["type"]}
    if text.get("verbosity") is not None:
        body["verbosity"] = text["verbosity"]


def _token_ids(payload: dict[str, Any], choice: dict[str, Any]) -> TokenIds | None:
    """vLLM's `return_token_ids`: the ids that the server used and sampled. One log-probability per completion id."""
    prompt, completion = payload.get("prompt_token_ids"), choice.get("token_ids")
    if not isinstance(prompt, list) or not isinstance(completion, list):
        return None
    logprobs = [logprob(entry.get("logprob")) for entry in (choice.get("logprobs") or {}).get("content") or ()]
    if logprobs and len(logprobs) != len(completion):
        raise DialectError(f"{len(completion)} token ids but {len(logprobs)} log-probabilities")
    return TokenIds(
        token_ids(prompt),
        token_ids(completion),
        logprobs or [None] * len(completion),
        weight_version=label(payload.get("weight_version")),
    )
