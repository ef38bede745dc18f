"""OpenAI Responses (https://platform.openai.com/docs/api-reference/responses), without state on the server."""

from typing import Any

from gymflow.contracts.trajectory import Usage
from gymflow.models.base import FinishReason, ModelRequest, ModelResponse
from gymflow.models.dialects import Interrupted, finish_of
from gymflow.models.dialects.checked import checked, count, details


def encode_request(request: ModelRequest, model: str) -> dict[str, Any]:
    """The body of `POST /responses`; items and tools go out as they are."""
    body: dict[str, Any] = {"model": model, "input": request.input, "store": False}
    sampling = request.sampling
    for name, value in (
        ("instructions", request.instructions),
        ("tools", request.tools or None),
        ("tool_choice", request.tool_choice if request.tools else None),
        ("parallel_tool_calls", request.parallel_tool_calls if request.tools else None),
        ("text", request.text),
        ("reasoning", _reasoning(request)),
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("top_k", sampling.top_k),
        ("max_output_tokens", sampling.max_output_tokens),
        ("frequency_penalty", sampling.frequency_penalty),
        ("presence_penalty", sampling.presence_penalty),
        ("stop", sampling.stop),
        ("seed", request.seed),
    ):
        if value is not None:
            body[name] = value
    return body | sampling.extra | request.extra


@checked
def decode_response(payload: dict[str, Any]) -> ModelResponse:
    """An answer of `/responses`. Raises DialectError when it has no output or says that it failed."""
    output = payload.get("output")
    if payload.get("status") in ("failed", "cancelled") or not isinstance(output, list):
        error = payload.get("error") or {}
        words = error.get("message") if isinstance(error, dict) else str(error)
        raise Interrupted(f"the answer's status is {payload.get('status')!r}: {words or 'no output'}")
    if not output and payload.get("status") != "incomplete":
        raise Interrupted("the answer has no output")
    items = [{key: value for key, value in item.items() if value is not None} for item in output]
    return ModelResponse(
        output=items,
        finish_reason=_finish(payload) or finish_of(items),
        usage=decode_usage(payload.get("usage")),
        reported_model=payload.get("model"),
        response_id=payload.get("id"),
    )


def decode_usage(usage: Any) -> Usage:
    """Token counts; what the endpoint does not report stays None."""
    if not isinstance(usage, dict):
        return Usage()
    prompt = details(usage, "input_tokens_details")
    return Usage(
        prompt_tokens=count(usage.get("input_tokens")),
        completion_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(details(usage, "output_tokens_details").get("reasoning_tokens")),
        cached_tokens=count(prompt.get("cached_tokens")),
        cache_write_tokens=count(prompt.get("cache_write_tokens")),
    )


def _reasoning(request: ModelRequest) -> dict[str, Any] | None:
    effort = request.sampling.reasoning_effort
    return request.reasoning if effort is None else (request.reasoning or {}) | {"effort": effort}


def _finish(payload: dict[str, Any]) -> FinishReason | None:
    if payload.get("status") != "incomplete":
        return None
    reason = (payload.get("incomplete_details") or {}).get("reason")
    return "content_filter" if reason == "content_filter" else "length"
