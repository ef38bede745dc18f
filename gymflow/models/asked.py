"""Whether a request is one: what callers send is checked before anything is counted, recorded or sent for it."""

from typing import Any

from gymflow.models.base import Item, ModelRequest
from gymflow.models.dialects import DialectError
from gymflow.models.wire import deeper_than

MAX_DEPTH = 100
"""Levels of nesting; the store keeps no more."""
_TEXTS = frozenset({"type", "role", "id", "call_id", "name", "namespace", "status", "encrypted_content"})
_CALLS = ("function_call", "custom_tool_call")
_CALL_TEXTS = _TEXTS | {"arguments", "input"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_PARTS = ("content", "summary")
_PART_TEXTS = ("type", "text", "refusal")


def check(request: ModelRequest) -> None:
    """Raises DialectError for a request whose parts are not of the types that every dialect has them in."""
    for item in _objects(request.input, "input"):
        _check_item(item)
    for tool in _objects(request.tools, "tools"):
        _require(tool, ("type", "name"), "a tool")
        if tool.get("type", "function") == "function" and not tool.get("name"):
            raise DialectError("a function tool's `name` is missing")
    for name, value, kinds in (
        ("instructions", request.instructions, str),
        ("tool_choice", request.tool_choice, str | dict),
        ("parallel_tool_calls", request.parallel_tool_calls, bool),
        ("text", request.text, dict),
        ("text.format", request.text.get("format") if isinstance(request.text, dict) else None, dict),
        ("reasoning", request.reasoning, dict),
    ):
        if value is not None and not isinstance(value, kinds):
            raise DialectError(f"`{name}` has the wrong type: {type(value).__name__}")
    if deeper_than(
        MAX_DEPTH, [request.input, request.tools, request.text, request.tool_choice, request.reasoning, request.extra]
    ):
        raise DialectError(f"the request is nested deeper than {MAX_DEPTH} levels")


def _check_item(item: Item) -> None:
    kind = item.get("type") or item.get("role")
    texts = _CALL_TEXTS if kind in _CALLS else _TEXTS
    for name, value in item.items():
        if type(value) is str or value is None:
            continue
        if name in texts:
            raise DialectError(f"`{name}` of {_named(kind)} has the wrong type: {type(value).__name__}")
        if name in _PARTS or (name == "output" and kind in _OUTPUTS):
            for part in _objects(value, name):
                _require(part, _PART_TEXTS, f"a part of {_named(kind)}")


def _named(kind: object) -> str:
    return f"a {kind}" if isinstance(kind, str) else "an item"


def _objects(value: Any, name: str) -> list[Item]:
    if not isinstance(value, list):
        raise DialectError(f"`{name}` must be a list, and is {type(value).__name__}")
    for one in value:
        if not isinstance(one, dict):
            raise DialectError(f"`{name}` must be a list of objects, and has {type(one).__name__}")
    return value


def _require(item: Item, texts: tuple[str, ...], what: str) -> None:
    for name in texts:
        value = item.get(name)
        if type(value) is not str and value is not None:
            raise DialectError(f"`{name}` of {what} has the wrong type: {type(value).__name__}")
