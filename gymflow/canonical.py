"""Canonical JSON (RFC 8785): one byte string per value, so that digests agree across processes, versions and machines.

It departs from the RFC in two places where the RFC loses or refuses data that occurs in practice: integers keep all
their digits (the RFC rounds them to doubles), and a lone surrogate is written as its escape (the RFC refuses it).
"""

from json.encoder import encode_basestring
from math import isfinite
from typing import Any

import orjson

MAX_DEPTH = 200
_FLAT = frozenset((str, int, bool, type(None)))
"""What the C serialiser writes as the RFC does, and keys are mostly made of: everything but floats and the order of keys."""


def canonical_json(value: Any) -> bytes:
    """UTF-8 bytes with keys in UTF-16 order, shortest floats in ECMAScript's form, and no white space.

    `1.0` and `1` are the same number. Raises ValueError for NaN, infinities, keys that are not strings, types that JSON
    does not have, and nesting beyond 200 levels.
    """
    if type(value) is list and _FLAT.issuperset(map(type, value)):
        try:
            return orjson.dumps(value)
        except TypeError:
            pass  # an integer beyond 64 bits or a lone surrogate
    parts: list[str] = []
    _write(value, parts.append, 0)
    # A lone surrogate cannot be encoded; backslashreplace writes exactly its JSON escape.
    return "".join(parts).encode("utf-8", "backslashreplace")


def _write(value: Any, emit: Any, depth: int) -> None:
    kind = type(value)
    if kind is str:
        emit(encode_basestring(value))
    elif value is None:
        emit("null")
    elif kind is bool:
        emit("true" if value else "false")
    elif kind is int:
        emit(str(value))
    elif kind is float:
        emit(_number(value))
    elif depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, dict):
        emit("{")
        for position, key in enumerate(_sorted_keys(value)):
            emit("," + encode_basestring(key) + ":" if position else encode_basestring(key) + ":")
            _write(value[key], emit, depth + 1)
        emit("}")
    elif isinstance(value, list | tuple):
        emit("[")
        for position, element in enumerate(value):
            if position:
                emit(",")
            _write(element, emit, depth + 1)
        emit("]")
    elif isinstance(value, str | int | float):
        _write(_plain(value), emit, depth)
    else:
        raise ValueError(f"{kind.__name__} is not a JSON value")


def _plain(value: str | int | float) -> str | int | float:
    """The built-in value of a subclass such as an enum member."""
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


def _sorted_keys(value: dict[Any, Any]) -> list[str]:
    keys = list(value)
    for key in keys:
        if not isinstance(key, str):
            raise ValueError(f"an object's key must be a string, not {type(key).__name__}")
    if all(key.isascii() for key in keys):
        return sorted(keys)
    return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _number(value: float) -> str:
    """ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20), which RFC 8785 requires."""
    if not isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" and not exponent_text else fraction
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    point = len(whole) - leading_zeros + int(exponent_text or 0)
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"
