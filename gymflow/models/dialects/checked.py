"""Whether an answer is what its dialect says: an endpoint that sends anything else has failed, and its answer is no model's."""

import math
import reprlib
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from gymflow.models.base import Item, ModelResponse
from gymflow.models.dialects import DialectError
from gymflow.models.wire import deeper_than

Decode = Callable[[dict[str, Any]], ModelResponse]
_MOST = 2**53
"""Beyond it JSON numbers are not exact, and no token was ever counted."""
_DEEPEST = 100
_IDS = 2**31
"""Vocabularies are smaller by far, and the store keeps ids in 32 bits."""
_ROUNDING = 1e-3
"""How far above zero a log-probability may come out where a server computes in half precision."""
_READ = frozenset({"message", "reasoning", "function_call"})
_TEXTS = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "function_call_output": ("call_id",),
}


def checked(decode: Decode) -> Decode:
    """A decoder that raises DialectError for every answer that is malformed, wherever that shows."""

    @wraps(decode)
    def decode_response(payload: dict[str, Any]) -> ModelResponse:
        try:
            response = decode(payload)
            for item in response.output:
                _require(item)
        except DialectError:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DialectError(f"the answer is not of the dialect ({error})") from error
        named = response.reported_model, response.response_id
        if all(name is None or type(name) is str for name in named):
            return response
        model, response_id = (None if name is None else str(name) for name in named)
        return replace(response, reported_model=model, response_id=response_id)

    return decode_response


def count(value: Any) -> int | None:
    """A number of tokens as an endpoint reports it; what cannot be one counts as not reported."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < _MOST else None


def token_ids(values: Any) -> list[int]:
    """Token ids. Raises DialectError for a list that holds anything else: what was really seen or sampled is then not known."""
    if type(values) is not list:
        raise DialectError(f"its token ids are no list but {type(values).__name__}")
    for position, value in enumerate(values):
        if type(value) is not int or not 0 <= value < _IDS:
            raise DialectError(f"{reprlib.repr(value)} at position {position} is no token id")
    return values


def logprob(value: Any) -> float | None:
    """A log-probability in nats, or None where there is none. Raises DialectError for what is no logarithm of a probability."""
    if value is None:
        return None
    if type(value) not in (int, float) or not -math.inf < value <= _ROUNDING:
        raise DialectError(f"{reprlib.repr(value)} is no log-probability")
    return min(float(value), 0.0)


def label(value: Any) -> str | None:
    """A name or a number that an endpoint gives something, as text; None for anything else."""
    return str(value) if type(value) in (str, int, float) else None


def details(usage: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of a usage report; empty where there is none."""
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _require(item: Item) -> None:
    kind = item["type"]
    _text(kind, "an item's type")
    if kind not in _READ:
        _shallow(item, kind)
    for name in _TEXTS.get(kind, ()):
        _text(item.get(name, ""), f"a {kind}'s {name}")
    if kind == "message":
        content = item["content"]
        if type(content) is not str:
            for part in content:
                _text(part.get("text", ""), "a message's text")
                _text(part.get("refusal", ""), "a refusal")
    elif kind == "reasoning":
        for part in (*(item.get("content") or ()), *(item.get("summary") or ())):
            _text(part.get("text", ""), "a reasoning's text")


def _shallow(value: Any, kind: str) -> None:
    """What is kept without being read can be compared and written again."""
    if deeper_than(_DEEPEST, [value]):
        raise DialectError(f"a {kind} is nested deeper than {_DEEPEST} levels")


def _text(value: Any, what: str) -> None:
    if value is not None and not isinstance(value, str):
        raise DialectError(f"{what} is no text but {type(value).__name__}")
