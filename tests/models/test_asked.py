"""Bodies that make no sense: each is refused in its caller's own shape, before anything is counted, recorded or sent."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from gymflow.contracts.model import ModelSpec
from gymflow.models import Gateway
from gymflow.models.server import Admission, GatewayServer
from gymflow.runtime.conversations import Conversations
from tests.support.endpoint import RunningEndpoint, start_endpoint

SAID = [{"role": "user", "content": "hi"}]
DEEP: Any = "x"
for _ in range(300):
    DEEP = [{"type": "input_text", "x": DEEP}]

RESPONSES: list[dict[str, Any]] = [
    {"input": [1]},
    {"input": ["a"]},
    {"input": [None]},
    {"input": SAID, "instructions": 5},
    {"input": SAID, "instructions": ["x"]},
    {"input": SAID, "tools": "x"},
    {"input": SAID, "tools": {"a": 1}},
    {"input": SAID, "tools": [1]},
    {"input": SAID, "tools": [{"type": 5, "name": ["f"]}]},
    {"input": SAID, "tools": [{"type": "function", "parameters": {}}]},
    {"input": SAID, "tool_choice": 5},
    {"input": SAID, "text": 5},
    {"input": SAID, "text": {"format": 5}},
    {"input": SAID, "reasoning": 5},
    {"input": SAID, "reasoning": "high"},
    {"input": SAID, "temperature": "hot"},
    {"input": SAID, "parallel_tool_calls": "yes"},
    {"input": SAID, "stream": "no"},
    {"input": [{"role": ["user"], "content": "x"}]},
    {"input": [{"role": "user", "content": 5}]},
    {"input": [{"role": "user", "content": [5]}]},
    {"input": [{"role": "user", "content": {"a": 1}}]},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]},
    {"input": [{"type": 5}]},
    {"input": [{"type": "reasoning", "summary": 5}]},
    {"input": [{"type": "function_call", "name": 5, "arguments": {"a": 1}, "call_id": 1}]},
    {"input": [{"type": "function_call_output", "call_id": ["x"], "output": 5}]},
    {"input": [{"role": "user", "content": DEEP}]},
]
CHAT: list[dict[str, Any]] = [
    {"messages": ["x"]},
    {"messages": SAID, "tools": {"a": 1}},
    {"messages": SAID, "tools": [{"type": "function", "function": {"name": 5}}]},
    {"messages": SAID, "tools": [{"type": "function", "function": {}}]},
    {"messages": [{"role": "assistant", "reasoning_content": {"a": 1}}]},
    {"messages": [{"role": "assistant", "content": 5}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": 5, "name": 7}}]}]},
    {"messages": SAID, "response_format": "json"},
    {"messages": SAID, "parallel_tool_calls": 5},
]
MESSAGES: list[dict[str, Any]] = [
    {"messages": SAID, "max_tokens": 9, "system": 5},
    {"messages": SAID, "max_tokens": 9, "system": [5]},
    {"messages": SAID, "max_tokens": 9, "tool_choice": "auto"},
    {"messages": SAID, "max_tokens": 9, "output_config": 5},
    {"messages": [{"role": "assistant", "content": [{"type": "text", "text": 5}]}], "max_tokens": 9},
    {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": 5}]}]},
    {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": 5, "name": [], "input": "x"}]}]},
]
BODIES = {"/responses": RESPONSES, "/chat/completions": CHAT, "/messages": MESSAGES}
RAW = (b"", b"[]", b"\xff", b'{"input":NaN}', b'{"input":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"input":"hi"')


@pytest.fixture(scope="module")
def endpoint():
    with start_endpoint(tool_turns=0) as running:
        yield running


@asynccontextmanager
async def conversing(spec: ModelSpec) -> AsyncIterator[tuple[Admission, Conversations]]:
    async with Gateway({"policy": spec}) as gateway:
        server, conversations = GatewayServer(), Conversations(gateway)
        await server.open()
        try:
            yield server.admit(conversations, lasting=True), conversations
        finally:
            await server.close()


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
async def test_no_body_breaks_the_gateway_or_becomes_a_conversation(endpoint: RunningEndpoint, api: str) -> None:
    spec: Any = {"provider": "anthropic"} if api == "messages" else {"api": api}
    async with (
        conversing(ModelSpec(model="fake-model", base_url=endpoint.url, **spec)) as (admission, conversations),
        aiohttp.ClientSession() as session,
    ):
        asked = [(path, json.dumps(body).encode(), body) for path, bodies in BODIES.items() for body in bodies]
        asked += [
            (path, json.dumps(body | {"stream": True}).encode(), body)
            for path, _, body in asked
            if "stream" not in body
        ]
        asked += [(path, raw, raw) for path in BODIES for raw in RAW]
        wrong = []
        for path, data, body in asked:
            async with session.post(f"{admission.url}/v1{path}", data=data) as answer:
                said = await answer.read()
                if answer.status != 400 or (b'"type":"error"' in said) != (path == "/messages"):
                    wrong.append((path, str(body)[:200], answer.status, said[:200]))
        assert wrong == []
        assert conversations.due() == []
        async with session.post(f"{admission.url}/v1/responses", json={"input": "hi"}) as answer:
            assert answer.status == 200
        assert len(conversations.due()) == 1
