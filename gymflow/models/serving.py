"""The dialects that the gateway's server speaks, by path."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gymflow.contracts.model import Sampling
from gymflow.models.base import Dialect, ModelRequest, ModelResponse
from gymflow.models.dialects import serve_chat, serve_messages, serve_responses


@dataclass(frozen=True, slots=True)
class ServedDialect:
    """What it takes to be an endpoint of one dialect."""

    name: Dialect
    decode_request: Callable[[dict[str, Any]], ModelRequest]
    encode_response: Callable[[ModelResponse, str], dict[str, Any]]
    encode_stream: Callable[[ModelResponse, str, dict[str, Any]], Iterator[bytes]]
    """Answer, the model's name, and the body that asked for a stream."""
    encode_error: Callable[[int, str, str | None], dict[str, Any]]
    encode_error_events: Callable[[int, str, str | None], bytes]
    """An error inside a stream that has begun, as events that this dialect's clients take for one."""


SERVED: dict[str, ServedDialect] = {
    "/chat/completions": ServedDialect(
        "chat",
        serve_chat.decode_request,
        serve_chat.encode_response,
        serve_chat.encode_stream,
        serve_chat.encode_error,
        serve_chat.encode_error_events,
    ),
    "/responses": ServedDialect(
        "responses",
        serve_responses.decode_request,
        serve_responses.encode_response,
        serve_responses.encode_stream,
        serve_chat.encode_error,
        serve_responses.encode_error_events,
    ),
    "/messages": ServedDialect(
        "messages",
        serve_messages.decode_request,
        serve_messages.encode_response,
        serve_messages.encode_stream,
        serve_messages.encode_error,
        serve_messages.encode_error_events,
    ),
}
"""Path below a rollout's base URL -> dialect."""

_NAMES: dict[Dialect, dict[str, str]] = {
    "chat": {"max_output_tokens": "max_tokens", "reasoning_effort": "reasoning_effort", "stop": "stop"},
    "responses": {"max_output_tokens": "max_output_tokens", "stop": "stop"},
    "messages": {"max_output_tokens": "max_tokens", "stop": "stop_sequences"},
}


def inject_sampling(body: dict[str, Any], dialect: Dialect, sampling: Sampling) -> dict[str, Any]:
    """A caller's body with the run's sampling parameters in place of its own."""
    injected = {**body, **sampling.extra}
    for name in ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"):
        if (value := getattr(sampling, name)) is not None:
            injected[name] = value
    for name, field in _NAMES[dialect].items():
        if (value := getattr(sampling, name)) is not None:
            injected[field] = value
            if name == "max_output_tokens" and dialect == "chat":
                _one_limit(injected, body)
    if sampling.reasoning_effort is not None and dialect != "chat":
        outer = "reasoning" if dialect == "responses" else "output_config"
        injected[outer] = {**(body.get(outer) or {}), "effort": sampling.reasoning_effort}
    return injected


def _one_limit(injected: dict[str, Any], body: dict[str, Any]) -> None:
    """Chat has two names for the output limit, and endpoints refuse both at once: the caller's own stays."""
    if "max_completion_tokens" in body:
        injected["max_completion_tokens"] = injected.pop("max_tokens")
