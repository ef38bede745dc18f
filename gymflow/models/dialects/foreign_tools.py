"""Tools that only Responses has, made into functions for endpoints of other dialects, and back.

Codex groups the tools of an MCP server into a `namespace`, and gives some tools free text (`custom`). Tools that OpenAI runs
itself (web search and the like) exist nowhere else and are left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gymflow.models import wire
from gymflow.models.base import Item, ModelRequest
from gymflow.models.dialects import OWN, DialectError, parts_of

SEPARATOR = "__"
_FREE_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class ForeignTools:
    """What the functions that a model sees stand for."""

    namespaced: dict[str, tuple[str, str]] = field(default_factory=dict)
    custom: set[str] = field(default_factory=set)

    def restored(self, output: Iterable[Item]) -> list[Item]:
        """Output items in the caller's terms."""
        return [self._restored(item) if item.get("type") == "function_call" else item for item in output]

    def _restored(self, item: Item) -> Item:
        name = item["name"]
        if name in self.custom:
            return {
                "type": "custom_tool_call",
                "call_id": item["call_id"],
                "name": name,
                "input": _text(item["arguments"]),
            }
        if name in self.namespaced:
            namespace, plain = self.namespaced[name]
            return {**item, "name": plain, "namespace": namespace}
        return item


def as_functions(request: ModelRequest) -> tuple[ModelRequest, ForeignTools]:
    """The request with functions only, and the way back. Raises DialectError for what only the caller's dialect has."""
    known = ForeignTools()
    _refuse_own(request)
    tools = [function for tool in request.tools for function in _functions(tool, known)]
    items = [_item(item) for item in request.input]
    choice = request.tool_choice
    if isinstance(choice, dict) and choice.get("namespace"):
        choice = {"type": "function", "name": f"{choice['namespace']}{SEPARATOR}{choice['name']}"}
    elif isinstance(choice, dict) and choice.get("type") == "custom":
        choice = {"type": "function", "name": choice["name"]}
    return replace(request, tools=tools, input=items, tool_choice=choice), known


def _refuse_own(request: ModelRequest) -> None:
    for item in request.input:
        for part in (item, *parts_of(item.get("content")), *parts_of(item.get("output"))):
            if part.get("type") == OWN:
                raise DialectError(f"content of type {part['value'].get('type')!r} is not supported by this endpoint")
    for tool in request.tools:
        if tool.get("type") == OWN:
            raise DialectError(f"tools of type {tool['value'].get('type')!r} are not supported by this endpoint")


def _functions(tool: Item, known: ForeignTools) -> list[Item]:
    kind = tool.get("type", "function")
    if kind == "function":
        return [tool]
    if kind == "custom":
        known.custom.add(tool["name"])
        return [
            {"type": "function", "name": tool["name"], "description": tool.get("description"), "parameters": _FREE_TEXT}
        ]
    if kind == "namespace":
        functions = []
        for inner in tool.get("tools") or ():
            name = f"{tool['name']}{SEPARATOR}{inner['name']}"
            known.namespaced[name] = (tool["name"], inner["name"])
            functions.append({**inner, "type": "function", "name": name})
        return functions
    return []


def _item(item: Item) -> Item:
    kind = item.get("type")
    if kind == "function_call" and item.get("namespace"):
        joined = f"{item['namespace']}{SEPARATOR}{item['name']}"
        return {key: value for key, value in item.items() if key != "namespace"} | {"name": joined}
    if kind == "custom_tool_call":
        arguments = wire.dumps({"input": item.get("input") or ""}).decode()
        return {"type": "function_call", "call_id": item["call_id"], "name": item["name"], "arguments": arguments}
    if kind == "custom_tool_call_output":
        return {**item, "type": "function_call_output"}
    return item


def _text(arguments: str) -> str:
    try:
        value = wire.loads(arguments)
        return str(value["input"])
    except (ValueError, KeyError, TypeError):
        return arguments
