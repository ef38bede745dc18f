"""JSON on the wire: fast, and without refusing what models and datasets do contain now and then."""

import json
from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """JSON bytes. Integers beyond 64 bits keep their digits and a lone surrogate goes out as its escape. Raises ValueError for
    what is nested too deep."""
    try:
        return orjson.dumps(value)
    except TypeError:
        try:
            return json.dumps(value, separators=(",", ":")).encode()
        except RecursionError:
            raise ValueError("it is nested too deep") from None


def loads(content: bytes | str) -> Any:
    """The value of JSON text. Raises ValueError for text that is not JSON."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            return json.loads(content)
        except RecursionError:
            raise ValueError("it is nested too deep") from None


def deeper_than(levels: int, values: list[Any]) -> bool:
    """Whether something is in more lists and objects than that; level by level, as that needs no stack."""
    level: list[Any] = values
    for _ in range(levels + 1):
        level = [
            part
            for one in level
            for part in (one.values() if type(one) is dict else one if type(one) is list else ())
            if type(part) in (dict, list)
        ]
        if not level:
            return False
    return True
