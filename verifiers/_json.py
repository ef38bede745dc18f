"""Strict JSON from model text.

>>> parse('{"a": [1, 2.0]}')
{'a': [1, 2.0]}
"""

import json
from typing import Any


def parse(text: str, *, unique_keys: bool = False) -> Any:
    """The value. ValueError, with the reason, for what is no JSON: NaN and infinities, too deep nesting, doubled keys on demand."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique if unique_keys else None)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def shown(value: Any, limit: int = 200) -> str:
    """A value as short ASCII JSON, for reasons and details."""
    text = json.dumps(value, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _refuse(constant: str) -> Any:
    raise ValueError(f"not JSON: {constant} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        doubled = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"not JSON: the key {doubled!r} occurs twice")
    return value
