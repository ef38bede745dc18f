"""Whether a request is one: what callers send is checked before anything is counted, recorded or sent for it."""

from typing import Any

from gymflow.models.base import Item, ModelRequest
from gymflow.models.dialects import DialectError

MAX_DEPTH = 100
"""Levels of nesting; the store keeps no more."""
_TEXTS = ("type", "role", "id", "call_id", "name", "namespace", "status", "encrypted_content")
_PARTS = ("content", "summary")
_PART_TEXTS = ("type", "text", "refusal")


def check(request: ModelRequest) -> None:
    """Raises DialectError for a request whose parts are not of the types that every dialect has them in."""
    for item in _objects(request.input, "input"):
        _check_item(item)
    for tool in _objects(request.tools, "tools"):
        _require(tool, ("type", "name"), str, "a tool's")
        if tool.get("type", "function") == "function" and not tool.get("name"):
            raise DialectError("a function tool's `name` is missing")
    for name, value, kinds in (
        ("instructions", request.instructions, str),
        ("tool_choice", request.tool_choice, str | dict),
        ("parallel_tool_calls", request.parallel_tool_calls, bool),
        ("text", request.text, dict),
        ("text.format", (request.text or {}).get("format") if isinstance(request.text, dict) else None, dict),
        ("reasoning", request.reasoning, dict),
    ):
        if value is not None and not isinstance(value, kinds):
            raise DialectError(f"`{name}` has the wrong type: {type(value).__name__}")
    if _deeper([request.input, request.tools, request.text, request.tool_choice, request.reasoning, request.extra]):
        raise DialectError(f"the request is nested deeper than {MAX_DEPTH} levels")


def _check_item(item: Item) -> None:
    kind = item.get("type") or item.get("role")
    what = f"a {kind}'s" if isinstance(kind, str) else "an item's"
    _require(item, _TEXTS, str, what)
    for name in _PARTS:
        value = item.get(name)
        if value is None or isinstance(value, str):
            continue
        for part in _objects(value, name):
            _require(part, _PART_TEXTS, str, f"a part of {what}")
    if kind in ("function_call", "custom_tool_call"):
        _require(item, ("arguments", "input"), str, what)
    elif kind in ("function_call_output", "custom_tool_call_output") and not isinstance(item.get("output"), str | None):
        _objects(item["output"], "output")


def _objects(value: Any, name: str) -> list[Item]:
    if not isinstance(value, list):
        raise DialectError(f"`{name}` must be a list, and is {type(value).__name__}")
    for one in value:
        if not isinstance(one, dict):
            raise DialectError(f"`{name}` must be a list of objects, and has {type(one).__name__}")
    return value


def _require(item: Item, names: tuple[str, ...], kind: type, what: str) -> None:
    for name in names:
        value = item.get(name)
        if value is not None and not isinstance(value, kind):
            raise DialectError(f"{what} `{name}` has the wrong type: {type(value).__name__}")


def _deeper(values: list[Any]) -> bool:
    """Whether something is nested deeper than allowed; level by level, as that needs no stack."""
    level: list[Any] = values
    for _ in range(MAX_DEPTH + 1):
        level = [
            part
            for one in level
            for part in (one.values() if type(one) is dict else one if type(one) is list else ())
            if type(part) in (dict, list)
        ]
        if not level:
            return False
    return True
