"""What only one dialect has is passed on to endpoints that speak it, and refused where it would have to be converted."""

from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec
from gymflow.models.dialects import messages
from tests.models.test_server import serving

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "four"}}
SEARCHED = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "2 + 2"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    {"type": "text", "text": "four"},
]
CUSTOM = {"type": "custom", "custom": {"name": "patch", "description": "free text"}}
CALLED = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
ASK: Any = {"role": "user", "content": [DOCUMENT, {"type": "text", "text": "2 + 2?"}]}


async def test_claudes_documents_and_server_tools_reach_claude_as_they_are(serve) -> None:
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        answer = {"id": "a", "type": "message", "role": "assistant", "model": "m", "content": SEARCHED}
        return web.json_response(answer | {"stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}})

    spec = ModelSpec(provider="anthropic", model="m", base_url=await serve(handler))
    async with (
        serving(spec) as admission,
        anthropic.AsyncAnthropic(base_url=admission.url, api_key="k", max_retries=0) as client,
    ):
        history: list[Any] = [ASK]
        tools: Any = [SEARCH, {"type": "bash_20250124", "name": "bash"}]
        for _ in range(2):
            answer = await client.messages.create(model="m", max_tokens=9, messages=history, tools=tools)
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            history += [{"role": "assistant", "content": blocks}, {"role": "user", "content": "sure?"}]
        calls = admission.client.calls
    assert blocks == SEARCHED
    assert bodies[1]["messages"] == history[:3]
    assert bodies[1]["tools"] == tools
    assert [(call.status, call.parent, call.attempts) for call in calls] == [("ok", None, 1), ("ok", 0, 1)]
    again = messages.encode_messages([*calls[0].new_input, *calls[0].output])
    assert again == [ASK, {"role": "assistant", "content": SEARCHED}], "the record can be sent again"


async def test_openais_free_text_tools_reach_a_chat_endpoint_as_they_are(serve) -> None:
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        message = {"role": "assistant", "content": None, "tool_calls": [CALLED]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return web.json_response({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]})

    async with serving(ModelSpec(model="m", base_url=await serve(handler))) as admission:
        async with openai.AsyncOpenAI(base_url=admission.url + "/v1", api_key="k", max_retries=0) as client:
            history: list[Any] = [{"role": "user", "content": "q"}]
            tools: Any = [CUSTOM]
            for _ in range(2):
                answer = await client.chat.completions.create(model="m", messages=history, tools=tools)
                assert answer.choices[0].message.tool_calls
                history.append({"role": "assistant", "content": None, "tool_calls": [CALLED]})
                history.append({"role": "tool", "tool_call_id": "c1", "content": "done"})
        calls = admission.client.calls
    assert bodies[1]["tools"] == [CUSTOM]
    assert [(call.parent, call.output[0]["type"], call.output[0]["input"]) for call in calls] == [
        (None, "custom_tool_call", "*** Begin"),
        (0, "custom_tool_call", "*** Begin"),
    ]


async def test_free_text_tools_are_functions_where_an_endpoint_has_no_others() -> None:
    rules = [{"tool_calls": [{"name": "patch", "arguments": {"input": "*** Begin"}}]}]
    async with (
        serving(ModelSpec(provider="scripted", model="s", parameters={"rules": rules})) as admission,
        openai.AsyncOpenAI(base_url=admission.url + "/v1", api_key="k", max_retries=0) as client,
    ):
        tools: Any = [CUSTOM]
        asked: Any = [{"role": "user", "content": "q"}]
        answer = await client.chat.completions.create(model="m", messages=asked, tools=tools)
    (call,) = answer.choices[0].message.tool_calls or ()
    assert call.type == "custom"
    assert (call.custom.name, call.custom.input) == ("patch", "*** Begin")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"messages": [ASK]}, "content of type 'document'"),
        ({"messages": [{"role": "assistant", "content": SEARCHED}]}, "content of type 'server_tool_use'"),
        ({"tools": [SEARCH]}, "tools of type 'web_search_20250305'"),
    ],
)
async def test_what_cannot_be_converted_is_refused_before_it_counts(changed: Any, words: str) -> None:
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": [{"text": "four"}]})
    async with (
        serving(spec) as admission,
        anthropic.AsyncAnthropic(base_url=admission.url, api_key="k", max_retries=0) as client,
    ):
        body: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}
        with pytest.raises(anthropic.BadRequestError, match=words):
            await client.messages.create(**body | changed)
        assert admission.client.calls == []
        assert admission.outcome is None
