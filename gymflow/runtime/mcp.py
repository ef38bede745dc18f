"""The tools of an episode over MCP (Model Context Protocol, streamable HTTP, revision 2025-06-18), for agents that bring no loop
of ours: https://modelcontextprotocol.io/specification/2025-06-18/basic/transports

    endpoints = McpEndpoints()
    server = GatewayServer(routes=endpoints.routes())
    endpoints.serve(token, tools, call)             # POST /rollouts/<token>/mcp
    endpoints.dismiss(token)

Every request is answered by one JSON object, which the specification allows in place of an event stream; there is no session of
the protocol's own, since the token already names the rollout, and nothing is ever sent unasked, so GET is refused with 405.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gymflow import __version__
from gymflow.environments import ToolResult
from gymflow.models import wire

SERVER_NAME = "gym"
"""What agents prefix the tools' names with."""
LATEST = "2025-06-18"
SPOKEN = frozenset({LATEST, "2025-03-26", "2024-11-05"})
INVALID, UNKNOWN_METHOD, UNPARSEABLE = -32600, -32601, -32700

Item = dict[str, Any]
Call = Callable[[str, str, Item], Awaitable[ToolResult]]
"""Answers a call, given the tool's name, its arguments as JSON, and the request's `_meta`."""


@dataclass(frozen=True, slots=True)
class ToolServer:
    """One episode's tools (Responses function tools), and who answers them."""

    tools: Sequence[Item]
    call: Call

    async def answer(self, message: Any) -> Item | None:
        """The answer to one JSON-RPC message; None to a notification."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return None if isinstance(message, dict) and "id" in message else _error(None, INVALID, "not a request")
        if "id" not in message:
            return None
        given = message.get("params")
        parameters: Item = given if isinstance(given, dict) else {}
        match message["method"]:
            case "initialize":
                result = _introduction(parameters)
            case "ping":
                result = {}
            case "tools/list":
                functions = [tool for tool in self.tools if tool.get("type", "function") == "function"]
                result = {"tools": [_listed(tool) for tool in functions]}
            case "tools/call":
                result = await self._called(parameters)
            case method:
                return _error(message["id"], UNKNOWN_METHOD, f"there is no method {method!r}")
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _called(self, parameters: Item) -> Item:
        arguments = parameters.get("arguments")
        text = "{}" if arguments is None else wire.dumps(arguments).decode()
        meta = parameters.get("_meta")
        result = await self.call(str(parameters.get("name")), text, meta if isinstance(meta, dict) else {})
        return {"content": [{"type": "text", "text": result.output}], "isError": result.error}


class McpEndpoints:
    """The tool servers of the rollouts in flight, by token."""

    def __init__(self) -> None:
        self._served: dict[str, ToolServer] = {}

    def serve(self, token: str, tools: Sequence[Item], call: Call) -> None:
        """Open a rollout's endpoint."""
        self._served[token] = ToolServer(tools, call)

    def dismiss(self, token: str) -> None:
        """Close it; idempotent."""
        self._served.pop(token, None)

    def routes(self) -> list[web.RouteDef]:
        """For the server that agents reach."""
        return [web.post("/rollouts/{token}/mcp", self._post), web.get("/rollouts/{token}/mcp", self._get)]

    async def _get(self, request: web.Request) -> web.Response:
        return web.Response(status=405, headers={"allow": "POST"})

    async def _post(self, request: web.Request) -> web.Response:
        server = self._served.get(request.match_info["token"])
        if server is None:
            return web.Response(status=404)
        try:
            message = wire.loads(await request.read())
        except ValueError as error:
            return _json(_error(None, UNPARSEABLE, str(error)), 400)
        if isinstance(message, list):  # batches were part of revision 2025-03-26
            answers = [answer for one in message if (answer := await server.answer(one)) is not None]
            return _json(answers) if answers else web.Response(status=202)
        answer = await server.answer(message)
        return web.Response(status=202) if answer is None else _json(answer)


def _introduction(parameters: Item) -> Item:
    asked = parameters.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in SPOKEN else LATEST,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": SERVER_NAME, "version": __version__},
    }


def _listed(tool: Item) -> Item:
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    return {"name": tool["name"], "description": tool.get("description") or "", "inputSchema": schema}


def _error(identifier: Any, code: int, words: str) -> Item:
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": words}}


def _json(payload: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=wire.dumps(payload), content_type="application/json")
