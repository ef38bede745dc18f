"""Tools over MCP as the protocol's transport page has it."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gymflow.environments import ToolResult, function_tool
from gymflow.models.server import GatewayServer
from gymflow.runtime.mcp import McpEndpoints

TOOL = function_tool("add", "Add two numbers.", {"a": {"type": "integer"}, "b": {"type": "integer"}})
Ask = Any


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """POST a message to the endpoint of the rollout `token`; status and body."""
    endpoints = McpEndpoints()

    async def call(name: str, arguments: str, meta: dict[str, Any]) -> ToolResult:
        return ToolResult(f"{name} {arguments} {meta}", error=name != "add")

    endpoints.serve("token", [TOOL, {"type": "web_search"}], call)
    server = GatewayServer(routes=endpoints.routes())
    await server.open()
    async with aiohttp.ClientSession() as session:

        async def post(body: Any, token: str = "token") -> tuple[int, Any]:
            payload = {"data": body} if isinstance(body, str) else {"json": body}
            async with session.post(f"{server.url}/rollouts/{token}/mcp", **payload) as answer:
                return answer.status, await answer.json() if answer.content_type == "application/json" else None

        post.session, post.url, post.endpoints = session, f"{server.url}/rollouts/token/mcp", endpoints  # type: ignore[attr-defined]
        yield post
    await server.close()


def request(method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters}


@pytest.mark.parametrize(
    ("asked", "spoken"), [("2025-03-26", "2025-03-26"), ("2099-01-01", "2025-06-18"), (None, "2025-06-18")]
)
async def test_a_revision_that_both_speak_is_agreed_on(ask: Ask, asked: str | None, spoken: str) -> None:
    status, body = await ask(request("initialize", protocolVersion=asked))
    assert (status, body["id"], body["result"]["protocolVersion"]) == (200, 7, spoken)
    assert "tools" in body["result"]["capabilities"]


async def test_tools_are_listed_with_their_schema_and_called(ask: Ask) -> None:
    _, body = await ask(request("tools/list"))
    assert body["result"]["tools"] == [
        {"name": "add", "description": "Add two numbers.", "inputSchema": TOOL["parameters"]}
    ]
    _, body = await ask(request("tools/call", name="add", arguments={"a": 1, "b": 2}, _meta={"progressToken": 3}))
    assert body["result"] == {
        "content": [{"type": "text", "text": 'add {"a":1,"b":2} {\'progressToken\': 3}'}],
        "isError": False,
    }


async def test_a_tools_error_is_a_result_that_the_model_sees(ask: Ask) -> None:
    _, body = await ask(request("tools/call", name="other"))
    assert body["result"]["isError"] is True and body["result"]["content"][0]["text"] == "other {} {}"


async def test_notifications_are_taken_without_an_answer(ask: Ask) -> None:
    assert await ask({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)


async def test_batches_are_answered_in_one_list(ask: Ask) -> None:
    status, body = await ask([request("ping"), {"jsonrpc": "2.0", "method": "notifications/x"}])
    assert (status, body) == (200, [{"jsonrpc": "2.0", "id": 7, "result": {}}])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [("{", 400, -32700), (request("resources/list"), 200, -32601), ("[1]", 200, -32600), ("17", 200, -32600)],
)
async def test_what_is_not_understood_is_said_in_the_protocols_codes(
    ask: Ask, body: Any, status: int, code: int
) -> None:
    got, answer = await ask(body)
    first = answer[0] if isinstance(answer, list) else answer
    assert (got, first["error"]["code"]) == (status, code)


async def test_only_a_rollout_in_flight_has_an_endpoint(ask: Ask) -> None:
    assert (await ask(request("ping"), token="guessed"))[0] == 404
    async with ask.session.get(ask.url) as answer:
        assert answer.status == 405
    ask.endpoints.dismiss("token")
    assert (await ask(request("ping")))[0] == 404
