"""Streams as endpoints really send them: what they amount to, what is no answer, and what a caller is told about it."""

from itertools import pairwise
from typing import Any

import anthropic
import openai
import orjson
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import Usage
from gymflow.errors import RolloutFailure
from gymflow.items import function_calls, output_text
from gymflow.models import Gateway, ModelError, ModelRequest, wire
from gymflow.models.anthropic import Anthropic
from gymflow.models.base import Dialect, ModelResponse
from gymflow.models.dialects import (
    DialectError,
    Interrupted,
    chat,
    messages,
    refusal,
    responses,
    serve_chat,
    serve_messages,
    serve_responses,
)
from gymflow.models.dialects.events import ASSEMBLERS, EventStream
from gymflow.models.openai import OpenAI
from gymflow.models.server import Admission
from tests.models.test_server import serving

Event = dict[str, Any]
ASK: Any = [{"role": "user", "content": "q"}]
DONE = b"data: [DONE]\n\n"


def data(event: Any) -> bytes:
    return b"data: " + orjson.dumps(event) + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> Event:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def called(index: Any, identifier: str | None, name: str | None, arguments: Any) -> Event:
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": identifier, "type": "function", "function": function}])


def cut_input(partial: str) -> list[Event]:
    """A tool call whose input ends in the middle, as the output limit leaves it."""
    start = {"id": "a", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    block = {"type": "tool_use", "id": "t1", "name": "write", "input": {}}
    usage = {"input_tokens": 1, "output_tokens": 5}
    return [
        {"type": "message_start", "message": start | {"stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": partial}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def assembled(dialect: Dialect, events: list[Event]) -> Event:
    assembler = ASSEMBLERS[dialect]()
    for event in events:
        assembler.add(event)
    return assembler.payload()


def streaming(*events: bytes, content_type: str = "text/event-stream") -> Any:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": content_type})
        await response.prepare(request)
        for event in events:
            await response.write(event)
        return response

    return handler


def client_of(admission: Admission) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=admission.url + "/v1", api_key="k", max_retries=0)


def named(events: list[Event]) -> list[bytes]:
    return [b"event: " + event["type"].encode() + b"\n" + data(event) for event in events]


@pytest.mark.parametrize(
    "deltas",
    [
        [called(None, "a", "f", '{"x":1}'), called(None, "b", "g", "{}")],
        [called(None, "a", "f", '{"x":1}'), called(1, "b", "g", "{}")],
        [called(0, "a", "f", '{"x":1}'), called(0, "b", "g", "{}")],
        [called(1, "b", "g", "{}"), called(0, "a", "f", '{"x":1}')],
        [called(None, "a", "f", '{"x"'), called(None, None, None, ":1}"), called(None, "b", "g", "{}")],
        [called(0, "a", "f", ""), called(0, "a", None, '{"x"'), called(0, "", "", ":1}"), called(1, "b", "g", "{}")],
        [called(0, "a", "f", {"x": 1}), called(1, "b", "g", "{}")],
    ],
    ids=["no index", "one without", "one for all", "out of order", "in pieces", "id again", "arguments as an object"],
)
def test_each_tool_call_stays_one_call_however_a_server_counts_them(deltas: list[Event]) -> None:
    answer = chat.decode_response(assembled("chat", [*deltas, delta("tool_calls")]))
    calls = [(call["call_id"], call["name"], call["arguments"]) for call in function_calls(answer.output)]
    assert calls == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


def test_content_in_parts_is_text() -> None:
    parts = [{"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}]
    answer = chat.decode_response(assembled("chat", [delta(content=parts, reasoning={"odd": 1}), delta("stop")]))
    assert output_text(answer.output) == "four"


def test_a_tool_call_that_the_output_limit_cut_is_the_agents_doing() -> None:
    answer = messages.decode_response(assembled("messages", cut_input('{"path": "/a/b')))
    assert answer.finish_reason == "length"
    assert [call["arguments"] for call in function_calls(answer.output)] == ['{"path": "/a/b']


def test_items_of_a_response_that_ends_without_its_output_are_those_that_came() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "four"}]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    end = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    assert output_text(responses.decode_response(assembled("responses", [done, end])).output) == "four"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@given(cuts=st.lists(st.integers(0, 60), max_size=8))
def test_lines_may_end_in_all_three_ways_and_be_cut_anywhere(end: bytes, cuts: list[int]) -> None:
    stream = b'event: a\ndata: {"x": 1}\n\n: ping\n\ndata: two\ndata: lines\n\n'.replace(b"\n", end)
    places = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    cutter = EventStream()
    pieces = (stream[start:stop] for start, stop in pairwise(places))
    assert [text for piece in pieces for _, text in cutter.feed(piece)] == ['{"x": 1}', "", "two\nlines"]


ODD = (
    st.none() | st.booleans() | st.integers() | st.just([]) | st.just({}) | st.just([1]) | st.just("x") | st.just([{}])
)
EVENTS: dict[Dialect, list[Event]] = {
    "chat": [delta(role="assistant"), called(0, "a", "f", "{}"), delta(content="x"), delta("tool_calls")],
    "messages": cut_input('{"a": 1}'),
    "responses": [
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call", "name": "f"}},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [{"type": "x"}]}},
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [path, *(place for name, child in children for place in places(child, (*path, name)))]


@pytest.mark.parametrize("dialect", EVENTS)
@settings(max_examples=40, deadline=None)
@given(drawn=st.data())
async def test_one_odd_value_anywhere_in_a_stream_is_read_or_fails_the_call(dialect: Dialect, drawn: Any) -> None:
    events: Any = orjson.loads(orjson.dumps(EVENTS[dialect]))
    *path, last = drawn.draw(st.sampled_from(places(events)[1:]))
    holder = events
    for step in path:
        holder = holder[step]
    holder[last] = drawn.draw(ODD)
    provider = (Anthropic if dialect == "messages" else OpenAI)(
        ModelSpec(model="m", base_url="http://127.0.0.1:1/v1", api="responses" if dialect == "responses" else "chat")
    )
    await provider.open()
    assembler = ASSEMBLERS[dialect]()
    try:
        for event in events:
            provider._event(wire.dumps(event).decode(), assembler)
        provider._decoded(provider._understood(assembler.payload))
    except ModelError as error:
        assert error.kind is FailureKind.MODEL_ERROR
        assert "\n" not in error.message
    finally:
        await provider.close()


async def test_what_a_gateway_cannot_read_fails_the_call_and_not_the_gateway(serve) -> None:
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(1)
        return await streaming(data(delta(tool_calls=[7])), data(delta("tool_calls")), DONE)(request)

    spec = ModelSpec(model="m", base_url=await serve(handler))
    async with serving(spec) as admission:
        async with client_of(admission) as client:
            with pytest.raises(openai.APIError, match="not of the dialect"):
                await client.chat.completions.create(model="m", messages=ASK, stream=True)
        assert isinstance(admission.outcome, RolloutFailure)
        assert admission.outcome.kind is FailureKind.MODEL_ERROR
    assert asked == [1], "an answer that is complete would come out the same"


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_stream_that_says_done_before_the_answer_is_complete_was_cut(serve, api) -> None:
    if api == "chat":
        events = [data(delta(role="assistant", content="hel")), DONE]
    else:
        created = {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "output": []}}
        events = [*named([created]), DONE]
    spec = ModelSpec(model="m", base_url=await serve(streaming(*events)), api=api, max_retries=0)
    async with serving(spec) as admission:
        async with client_of(admission) as client:
            with pytest.raises(openai.APIError, match="broke off"):
                if api == "chat":
                    async for _ in await client.chat.completions.create(model="m", messages=ASK, stream=True):
                        pass
                else:
                    async for _ in await client.responses.create(model="m", input="q", stream=True):
                        pass
        assert admission.client.calls[0].status == "error"


async def test_the_caller_of_a_cut_tool_call_gets_the_whole_stream_and_no_error(serve) -> None:
    handler = streaming(*named(cut_input('{"path": "/a/b')))
    spec = ModelSpec(provider="anthropic", model="m", base_url=await serve(handler), max_retries=0)
    async with serving(spec) as admission:
        async with (
            anthropic.AsyncAnthropic(base_url=admission.url, api_key="k", max_retries=0) as client,
            client.messages.stream(model="m", max_tokens=9, messages=ASK) as events,
        ):
            answer = await events.get_final_message()
        call = admission.client.calls[0]
        assert admission.outcome is None
    assert answer.stop_reason == "max_tokens"
    assert (call.status, call.finish_reason, call.output[0]["arguments"]) == ("ok", "length", '{"path": "/a/b')


async def test_an_endpoint_that_does_not_stream_is_streamed_all_the_same(serve) -> None:
    message = {"role": "assistant", "content": "four"}
    payload = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(payload)

    spec = ModelSpec(model="m", base_url=await serve(handler), max_retries=0)
    async with serving(spec) as admission:
        async with client_of(admission) as client:
            text = ""
            async for chunk in await client.chat.completions.create(model="m", messages=ASK, stream=True):
                text += chunk.choices[0].delta.content or ""
        assert admission.client.calls[0].status == "ok"
    assert text == "four"


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"content": [{"type": "text", "text": {"a": 1}}], "stop_reason": "end_turn"}, 1),
        ({"content": None}, 3),
        ({"type": "error", "error": {"message": "overloaded"}}, 3),
    ],
    ids=["complete", "empty", "failed"],
)
async def test_only_what_may_come_out_otherwise_is_asked_again(serve, monkeypatch, body, asked) -> None:
    monkeypatch.setattr("gymflow.models.upstream.BACKOFF_BASE_S", 0.001)
    count = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return web.json_response(body)

    spec = ModelSpec(provider="anthropic", model="m", base_url=await serve(handler), max_retries=2)
    async with Gateway({"policy": spec}) as gateway:
        with pytest.raises(RolloutFailure) as failed:
            await gateway.client("policy").create(ModelRequest(ASK))
    assert (failed.value.kind, count) == (FailureKind.MODEL_ERROR, asked)


def test_an_interrupted_answer_is_a_kind_of_answer_that_is_none() -> None:
    with pytest.raises(Interrupted):
        assembled("chat", [delta(content="hel")])
    assert issubclass(Interrupted, DialectError)


@pytest.mark.parametrize("begun", [True, False], ids=["native", "converted"])
async def test_the_responses_stream_of_the_sdk_shows_the_error_in_it(serve, monkeypatch, begun) -> None:
    monkeypatch.setattr("gymflow.models.server.HEADERS_AFTER_S", 0.01)
    if begun:
        created = {"id": "r", "object": "response", "status": "in_progress", "output": []}
        handler = streaming(*named([{"type": "response.created", "sequence_number": 0, "response": created}]))
        spec = ModelSpec(model="m", base_url=await serve(handler), api="responses", max_retries=0)
        words = "broke off"
    else:
        rules = [{"delay_s": 0.1, "error": {"status": 400, "message": "too bad", "retryable": False}}]
        spec = ModelSpec(provider="scripted", model="s", parameters={"rules": rules})
        words = "too bad"
    async with serving(spec) as admission, client_of(admission) as client:
        with pytest.raises(openai.APIError, match=words):
            async with client.responses.stream(model="m", input="q") as events:
                await events.get_final_response()
    told = serve_responses.encode_error_events(502, words).split(b"\n")
    kinds = [line for line in told if line.startswith(b"event:")]
    assert kinds == [b"event: error", b"event: response.failed"], "Codex acts on the second"


@pytest.mark.parametrize("options", [None, {"include_usage": False}, {"include_usage": True}])
async def test_usage_is_streamed_where_it_was_asked_for(options: Any) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": [{"text": "four", "usage": usage}]})
    async with serving(spec) as admission, client_of(admission) as client:
        asked = {} if options is None else {"stream_options": options}
        stream = await client.chat.completions.create(model="m", messages=ASK, stream=True, **asked)
        chunks = [chunk async for chunk in stream]
    counted = [chunk.usage.prompt_tokens for chunk in chunks if chunk.usage]
    assert counted == ([9] if options == {"include_usage": True} else [])
    assert [chunk.choices == [] for chunk in chunks].count(True) == len(counted)


@pytest.mark.parametrize(
    ("stop", "content", "finish", "status"),
    [
        ("refusal", [{"type": "text", "text": "I"}], "content_filter", "incomplete"),
        ("refusal", [], "content_filter", "incomplete"),
        ("pause_turn", [{"type": "text", "text": "first I"}], "length", "incomplete"),
        ("max_tokens", [{"type": "text", "text": "first I"}], "length", "incomplete"),
        ("end_turn", [{"type": "text", "text": "four"}], "stop", "completed"),
    ],
)
async def test_why_claude_ended_is_told_to_openais_clients(serve, stop, content, finish, status) -> None:
    async def handler(request: web.Request) -> web.Response:
        answer = {"id": "a", "type": "message", "role": "assistant", "model": "m", "content": content}
        return web.json_response(answer | {"stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}})

    spec = ModelSpec(provider="anthropic", model="m", base_url=await serve(handler))
    async with serving(spec) as admission, client_of(admission) as client:
        completion = await client.chat.completions.create(model="m", messages=ASK)
        response = await client.responses.create(model="m", input="q")
    assert (completion.choices[0].finish_reason, response.status) == (finish, status)


def test_a_refusal_in_words_is_openais_refusal() -> None:
    answer = ModelResponse([refusal("I will not")], "refusal", Usage())
    assert serve_chat.encode_response(answer, "m")["choices"][0]["finish_reason"] == "stop"
    assert serve_responses.encode_response(answer, "m")["status"] == "completed"


def test_a_tool_that_failed_is_told_to_claude_as_it_was() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "no such file", "is_error": True}
    items = serve_messages.decode_message({"role": "user", "content": [result]})
    assert items[0]["status"] == "incomplete", "the word that Responses has"
    assert messages.encode_messages(items) == [{"role": "user", "content": [result]}]
