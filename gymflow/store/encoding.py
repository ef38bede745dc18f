"""JSON as the store keeps it, and the one treatment that each odd value gets.

non-finite number      null, flagged `non_finite`
lone surrogate         U+FFFD in values and keys, flagged `surrogate`: the JSON escape of one is refused by the JSON
                       readers that everything else here relies on (orjson, DuckDB), so it would poison the whole row
integer beyond 64 bit  kept exactly, flagged `big_integer`: such text is parsed by the slower exact parser
string over 256 kB     an artifact; the text holds its mark, flagged `artifact`
nesting over 100       null below that depth, flagged `too_deep`
"""

import hashlib
import json
from collections.abc import Callable, Collection
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

VALUE_LIMIT = 256 * 1024
"""Bytes of UTF-8 from which a string is kept as an artifact."""
MAX_DEPTH = 100
MARK = "gymflow-artifact:sha256:"
"""Begins a string that stands for an artifact. Text that begins so by itself is made an artifact too, hence no mix-up."""

NON_FINITE, SURROGATE, BIG_INTEGER, ARTIFACT, TOO_DEEP = (
    "non_finite",
    "surrogate",
    "big_integer",
    "artifact",
    "too_deep",
)

_MARK = MARK.encode()
_REPLACEMENT = "\ufffd".encode()
"""Also what the serialiser makes of a surrogate in a key, without complaint."""
_NUMBERS = (int, float)

Artifacts = dict[str, bytes]
"""Content digest -> bytes that have to be durable before the text that refers to them."""


def dumps(value: BaseModel | Any, artifacts: Artifacts | None = None, *, loose: Any = None) -> tuple[bytes, list[str]]:
    """UTF-8 JSON of a model or plain value, with the flags of what was odd in it, sorted.

    Without `artifacts` long strings stay where they are. `loose` names the parts of a model in which a number can be odd; only
    they are searched (default: all of it). Raises TypeError for what has no JSON form.
    """
    if not _odd_number(value if loose is None else loose):
        try:
            text = _to_json(value)
        except PydanticSerializationError:
            pass  # a surrogate in a value, or nesting that the serialiser refuses: the careful way tells which
        else:
            if _REPLACEMENT not in text and (artifacts is None or (len(text) <= VALUE_LIMIT and _MARK not in text)):
                return text, []
    flags: set[str] = set()
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="python")
    clean = _clean(value, artifacts, flags, 0)
    try:
        return _to_json(clean), sorted(flags)
    except PydanticSerializationError as error:
        raise TypeError(f"not a JSON value: {error}") from None


def loads(text: bytes | str, flags: Collection[str] = ()) -> Any:
    """Parse stored JSON; exact for the integers that `flags` announce."""
    return json.loads(text) if BIG_INTEGER in flags else orjson.loads(text)


def dumps_plain(value: Any) -> bytes:
    """JSON text of a value that came out of `loads`."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return to_json(value)


def resolve(value: Any, read: Callable[[str], bytes]) -> Any:
    """A parsed value with the artifacts that its marks stand for put back in."""
    if isinstance(value, str):
        return read(value.removeprefix(MARK)).decode() if value.startswith(MARK) else value
    if isinstance(value, dict):
        return {key: resolve(item, read) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, read) for item in value]
    return value


def repair(text: str) -> str:
    """Text without lone surrogates; halves that belong together are joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _to_json(value: Any) -> bytes:
    if isinstance(value, BaseModel):
        return value.__pydantic_serializer__.to_json(value)
    return to_json(value, inf_nan_mode="null")


def _odd_number(value: Any) -> bool:
    """Whether a number is in it that JSON or its readers cannot keep. Hot: runs for every rollout."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is str or item is None or kind is bool:
            continue
        if kind is dict:
            stack.extend(item.values())
        elif kind is list or kind is tuple:
            if item and type(item[0]) in _NUMBERS:
                if _odd_numbers(item):
                    return True
            else:
                stack.extend(item)
        elif kind is float:
            if item - item != 0.0:
                return True
        elif kind is int:
            if not -(2**63) <= item < 2**64:
                return True
        elif isinstance(item, BaseModel):
            stack.extend(item.__dict__.values())
    return False


def _odd_numbers(numbers: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list that begins with a number (token ids, log-probabilities) holds anything but plain finite ones."""
    try:
        total = sum(numbers)
        return total - total != 0 or not -(2**63) <= min(numbers) <= max(numbers) < 2**64
    except (TypeError, OverflowError):
        return any(_odd_number(number) for number in numbers)


def _is_artifact(text: str) -> bool:
    return text.startswith(MARK) or len(text.encode("utf-8", "replace")) > VALUE_LIMIT


def _clean(value: Any, artifacts: Artifacts | None, flags: set[str], depth: int) -> Any:
    if isinstance(value, str):
        try:
            data = value.encode()
        except UnicodeEncodeError:
            flags.add(SURROGATE)
            value = repair(value)
            data = value.encode()
        if artifacts is None or not _is_artifact(value):
            return value
        flags.add(ARTIFACT)
        digest = hashlib.sha256(data).hexdigest()
        artifacts[digest] = data
        return MARK + digest
    if isinstance(value, dict | list | tuple | set | frozenset):
        if depth >= MAX_DEPTH:
            flags.add(TOO_DEEP)
            return None
        if not isinstance(value, dict):
            return [_clean(item, artifacts, flags, depth + 1) for item in value]
        return {_clean_key(key, flags): _clean(item, artifacts, flags, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and value - value != 0.0:
        flags.add(NON_FINITE)
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        flags.add(BIG_INTEGER)
    return value


def _clean_key(key: Any, flags: set[str]) -> Any:
    if not isinstance(key, str) or key.isascii():
        return key
    repaired = repair(key)
    if repaired != key:
        flags.add(SURROGATE)
    return repaired
