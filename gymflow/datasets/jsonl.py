"""JSON Lines, read as a stream: every line becomes an object or a fault with its line number, and no line ends the process.

Refused in our input, because something downstream would read it differently or lose it: duplicate keys, NaN and infinities,
raw control characters, lone surrogates, invalid UTF-8, nesting beyond 128 levels. Integers keep all their digits. A byte order mark, CRLF line
ends and blank lines are accepted.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from gymflow.documents import lone_surrogate
from gymflow.errors import InputError

MAX_DEPTH = 128
_INT64 = 2.0**63


@dataclass(slots=True)
class Line:
    """One line that is not blank. `number` counts from 1; exactly one of `value` and `fault` is set."""

    number: int
    value: dict[str, Any] | None
    fault: str | None = None


def read_jsonl(file: Path) -> Iterator[Line]:
    """The lines of a file. InputError when the file itself cannot be read."""
    try:
        with file.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                raw = raw.strip(b" \t\r\n")
                if raw:
                    yield _line(number, raw)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error


def _line(number: int, raw: bytes) -> Line:
    try:
        value = parse_object(raw)
    except ValueError as error:
        return Line(number, None, str(error))
    return Line(number, value)


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object that a line holds. ValueError says what is wrong with it, with the column where there is one.

    Most lines are proven good by orjson and a count: when no white space stands before a colon, `":` occurs at least once for each
    key that was written, so as many as there are distinct keys means that no key occurs twice. The rest is read exactly.
    """
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH and b" :" not in raw and b"\t:" not in raw:
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # the exact reader knows the reason
        else:
            if type(value) is dict and _keys(value) == raw.count(b'":'):
                return value
    return _exact(raw)


def _keys(value: Any) -> int:
    """Keys in all objects; -1 where a number may have lost digits."""
    if type(value) is dict:
        total = len(value)
        children: Any = value.values()
    else:
        total = 0
        children = value
    for child in children:
        kind = type(child)
        if kind is dict or kind is list:
            inner = _keys(child)
            if inner < 0:
                return -1
            total += inner
        elif kind is float and not -_INT64 < child < _INT64:
            return -1
    return total


def _exact(raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    depth = _depth(text)
    if depth > MAX_DEPTH:
        raise ValueError(f"nested {depth} levels deep; at most {MAX_DEPTH} are read")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno})") from None
    if not isinstance(value, dict):
        raise ValueError(f"a row must be a JSON object, not {_JSON_NAMES.get(type(value), 'a number')}")
    if "\\u" in text and (where := lone_surrogate(value, "the row")) is not None:
        raise ValueError(f"a lone surrogate, half of a character, in {where}; no encoding can send it")
    return value


def _depth(text: str) -> int:
    depth = deepest = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return values


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text} is beyond what a float can hold")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON; write null or a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_constant)
_JSON_NAMES: dict[type, str] = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
