"""The gateway over HTTP, as the real clients of OpenAI and Anthropic see it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import anthropic
import openai
import orjson
import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.contracts.run import Budgets
from gymflow.errors import RolloutFailure, StopEpisode
from gymflow.models import Gateway, ModelClient
from gymflow.models import server as server_module
from gymflow.models.scripted import Scripted
from gymflow.models.server import Admission, GatewayServer
from tests.models.conftest import chat_answer
from tests.support.endpoint import RunningEndpoint, start_endpoint

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}}
ASK = "What is 2 + 2? [[answer:four]]"


@pytest.fixture(scope="module")
def endpoint():
    with start_endpoint(tool_turns=1, chunks=3) as running:
        yield running


@asynccontextmanager
async def serving(spec: ModelSpec, *, sampling: Sampling | None = None, **options: Any) -> AsyncIterator[Admission]:
    async with Gateway({"policy": spec}) as gateway:
        server = GatewayServer()
        await server.open()
        try:
            yield server.admit(gateway.client("policy", **options), sampling=sampling)
        finally:
            await server.close()


def upstreams(endpoint: RunningEndpoint) -> dict[str, ModelSpec]:
    url = endpoint.url
    scripted = [
        {"turn": 0, "contains": "use", "reasoning": "hm", "tool_calls": [{"name": "add", "arguments": {"a": 1}}] * 2},
        {
            "text": "four",
            "reasoning": "two and two",
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 4},
        },
    ]
    return {
        "chat": ModelSpec(model="fake-model", base_url=url, api="chat"),
        "responses": ModelSpec(model="fake-model", base_url=url, api="responses"),
        "messages": ModelSpec(provider="anthropic", model="fake-model", base_url=url),
        "scripted": ModelSpec(provider="scripted", model="s", parameters={"rules": scripted}),
    }


UPSTREAMS = ["chat", "responses", "messages", "scripted"]
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
every_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)


@pytest.fixture
async def chat_client() -> AsyncIterator[Callable[[Admission], openai.AsyncOpenAI]]:
    async with AsyncExitStack() as stack:

        def make(admission: Admission) -> openai.AsyncOpenAI:
            client = openai.AsyncOpenAI(base_url=admission.url + "/v1", api_key="a-rollouts-own", max_retries=0)
            stack.push_async_callback(client.close)
            return client

        yield make


@pytest.fixture
async def claude_client() -> AsyncIterator[Callable[[Admission], anthropic.AsyncAnthropic]]:
    async with AsyncExitStack() as stack:

        def make(admission: Admission) -> anthropic.AsyncAnthropic:
            client = anthropic.AsyncAnthropic(base_url=admission.url, api_key="a-rollouts-own", max_retries=0)
            stack.push_async_callback(client.close)
            return client

        yield make


async def chat_text(client: openai.AsyncOpenAI, stream: bool, **request: Any) -> tuple[str, Any]:
    if not stream:
        answer = await client.chat.completions.create(**request)
        return answer.choices[0].message.content or "", answer.usage
    text, usage = "", None
    options = {"include_usage": True}
    async for chunk in await client.chat.completions.create(stream=True, stream_options=options, **request):
        usage = chunk.usage or usage
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
    return text, usage


@streamed
@every_upstream
async def test_chat_completions_in_all_modes(endpoint, upstream, stream, chat_client):
    async with serving(upstreams(endpoint)[upstream]) as admission:
        messages = [{"role": "user", "content": ASK}]
        text, usage = await chat_text(chat_client(admission), stream, model="anything", messages=messages)
        call = admission.client.calls[0]
    assert text == "four"
    assert usage.prompt_tokens == call.usage.prompt_tokens
    assert (call.status, call.output[-1]["content"][0]["text"]) == ("ok", "four")


@streamed
@every_upstream
async def test_a_chat_tool_loop_keeps_one_history(endpoint, upstream, stream, chat_client):
    async with serving(upstreams(endpoint)[upstream]) as admission:
        client = chat_client(admission)
        messages: list[Any] = [{"role": "user", "content": "use the tool [[answer:four]]"}]
        tools = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]
        if stream:
            async with client.chat.completions.stream(model="m", messages=messages, tools=tools) as events:
                answer = (await events.get_final_completion()).choices[0].message
        else:
            answer = (
                (await client.chat.completions.create(model="m", messages=messages, tools=tools)).choices[0].message
            )
        assert answer.tool_calls
        called = [call.function for call in answer.tool_calls]
        assert {(function.name, orjson.loads(function.arguments)["a"]) for function in called} == {("add", 1)}
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call.model_dump() for call in answer.tool_calls]}
        )
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "4"} for call in answer.tool_calls]
        text, _ = await chat_text(client, stream, model="m", messages=messages, tools=tools)
        assert text == "four"
        calls = admission.client.calls
    assert calls[1].parent == 0
    assert [item["type"] for item in calls[1].new_input] == ["function_call_output"] * len(called)


@streamed
@every_upstream
async def test_responses_in_all_modes(endpoint, upstream, stream, chat_client):
    async with serving(upstreams(endpoint)[upstream]) as admission:
        client = chat_client(admission)
        tools = [{"type": "function", "name": "add", "parameters": PARAMETERS, "strict": False}]
        history: list[Any] = [{"role": "user", "content": "use the tool [[answer:four]]"}]
        texts = []
        for _ in range(2):
            if stream:
                async with client.responses.stream(model="m", input=history, tools=tools) as events:
                    answer = await events.get_final_response()
            else:
                answer = await client.responses.create(model="m", input=history, tools=tools)
            texts.append(answer.output_text)
            history += [item.model_dump(exclude_none=True, mode="json") for item in answer.output]
            for item in answer.output:
                if item.type == "function_call":
                    history.append({"type": "function_call_output", "call_id": item.call_id, "output": "4"})
        calls = admission.client.calls
    assert texts == ["", "four"]
    assert (calls[0].finish_reason, calls[1].finish_reason) == ("tool_calls", "stop")
    assert calls[1].parent == 0


@streamed
@every_upstream
async def test_messages_in_all_modes(endpoint, upstream, stream, claude_client):
    async with serving(upstreams(endpoint)[upstream]) as admission:
        client = claude_client(admission)
        tools: Any = [{"name": "add", "input_schema": PARAMETERS}]
        history: list[Any] = [{"role": "user", "content": "use the tool [[answer:four]]"}]
        for _ in range(2):
            request: Any = {"model": "m", "max_tokens": 99, "messages": history, "tools": tools, "system": "be brief"}
            if stream:
                async with client.messages.stream(**request) as events:
                    answer = await events.get_final_message()
            else:
                answer = await client.messages.create(**request)
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            history.append({"role": "assistant", "content": blocks})
            used = [block for block in blocks if block["type"] == "tool_use"]
            assert all(block["input"] == {"a": 1} for block in used)
            results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "4"} for block in used]
            if results:
                assert answer.stop_reason == "tool_use"
                history.append({"role": "user", "content": results})
        calls = admission.client.calls
        texts = [block["text"] for block in blocks if block["type"] == "text"]
    assert (texts, answer.stop_reason) == (["four"], "end_turn")
    assert calls[1].parent == 0
    assert answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0) + (
        answer.usage.cache_creation_input_tokens or 0
    ) == (calls[1].usage.prompt_tokens or 0)


async def test_what_an_endpoint_speaks_natively_is_passed_on_as_it_is(serve, chat_client):
    seen: dict[str, Any] = {}

    async def handler(request):
        seen.update(await request.json())
        return web.json_response(chat_answer() | {"system_fingerprint": "fp", "x_extension": {"a": 1}})

    spec = ModelSpec(model="real-name", base_url=await serve(handler))
    sampling = Sampling(temperature=0.25, max_output_tokens=7)
    async with serving(spec, sampling=sampling, seed=3) as admission:
        answer = await chat_client(admission).chat.completions.create(
            model="their-name",
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]}
            ],
            temperature=1.0,
            max_completion_tokens=5000,
            extra_body={"vendor_field": True},
        )
        parameters = admission.client.calls[0].parameters
    assert seen["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert (seen["model"], seen["vendor_field"], seen["temperature"], seen["max_completion_tokens"]) == (
        "real-name",
        True,
        0.25,
        7,
    )
    assert "max_tokens" not in seen
    assert (answer.model, answer.system_fingerprint) == ("their-name", "fp")
    assert (parameters["temperature"], parameters["max_output_tokens"], parameters["seed"]) == (0.25, 7, seen["seed"])


async def test_codex_namespaces_and_free_text_tools_reach_other_dialects_as_functions():
    rules = [
        {
            "turn": 0,
            "tool_calls": [
                {"name": "mcp__gym__add", "arguments": {"a": 1}},
                {"name": "patch", "arguments": {"input": "x"}},
            ],
        },
        {"turn": 1, "text": "done"},
    ]
    async with serving(ModelSpec(provider="scripted", model="s", parameters={"rules": rules})) as admission:
        add = {"type": "function", "name": "add", "parameters": PARAMETERS}
        tools = [
            {"type": "namespace", "name": "mcp__gym", "tools": [add]},
            {"type": "custom", "name": "patch"},
            {"type": "web_search"},
        ]
        body: dict[str, Any] = {"model": "m", "input": [{"role": "user", "content": "q"}], "tools": tools}
        async with aiohttp.ClientSession() as session:
            async with session.post(admission.url + "/v1/responses", json=body) as answer:
                output = (await answer.json())["output"]
            assert (output[0]["namespace"], output[0]["name"]) == ("mcp__gym", "add")
            assert (output[1]["type"], output[1]["input"]) == ("custom_tool_call", "x")
            body["input"] += output
            body["input"].append({"type": "function_call_output", "call_id": output[0]["call_id"], "output": "1"})
            body["input"].append({"type": "custom_tool_call_output", "call_id": output[1]["call_id"], "output": "2"})
            async with session.post(admission.url + "/v1/responses", json=body) as answer:
                assert (await answer.json())["output"][0]["content"][0]["text"] == "done"
        assert admission.client.calls[1].parent == 0


def scripted_error(**error: Any) -> ModelSpec:
    return ModelSpec(provider="scripted", model="s", max_retries=0, parameters={"rules": [{"error": error}]})


@streamed
async def test_errors_come_in_the_callers_own_shape(stream, chat_client, claude_client):
    spec = scripted_error(status=404, message="no such model", retryable=False)
    async with serving(spec) as admission:
        messages: Any = [{"role": "user", "content": "q"}]
        with pytest.raises(openai.NotFoundError, match="no such model"):
            await chat_client(admission).chat.completions.create(model="m", messages=messages, stream=stream)
    async with serving(spec) as admission:
        with pytest.raises(openai.NotFoundError, match="no such model"):
            await chat_client(admission).responses.create(model="m", input="q", stream=stream)
    async with serving(spec) as admission:
        with pytest.raises(anthropic.NotFoundError, match="no such model") as error:
            await claude_client(admission).messages.create(model="m", max_tokens=9, messages=messages, stream=stream)
        assert error.value.body["error"]["type"] == "not_found_error"
        assert isinstance(admission.outcome, RolloutFailure)
        assert admission.outcome.kind is FailureKind.MODEL_ERROR


async def test_a_request_that_makes_no_sense_is_answered_and_not_recorded():
    async with serving(scripted_error()) as admission, aiohttp.ClientSession() as session:
        for body in (b"{", b"[]", b'{"messages": 5}', b'{"messages": [5]}', b'{"messages": [], "temperature": -1}'):
            async with session.post(admission.url + "/v1/chat/completions", data=body) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["message"]
        assert admission.client.calls == []


@streamed
async def test_what_breaks_inside_the_gateway_is_a_failure_in_the_callers_shape_and_the_rollouts_end(
    stream, chat_client, claude_client
):
    asked = []

    def reply(request):
        asked.append(request)
        raise KeyError("nobody foresaw this")

    spec = ModelSpec(provider="scripted", model="s", max_retries=5)
    messages: Any = [{"role": "user", "content": "q"}]
    async with Gateway({"policy": spec}, providers={"policy": Scripted(spec, answer=reply)}) as gateway:
        server = GatewayServer()
        await server.open()
        for make, error in ((chat_client, openai.APIStatusError), (claude_client, anthropic.APIStatusError)):
            admission = server.admit(gateway.client("policy"))
            client = make(admission)
            for words in ("nobody foresaw this", "has ended and may make no more calls"):
                with pytest.raises(error, match=words) as raised:
                    if make is chat_client:
                        await client.chat.completions.create(model="m", messages=messages, stream=stream)
                    else:
                        await client.messages.create(model="m", max_tokens=9, messages=messages, stream=stream)
                assert raised.value.response.headers["x-should-retry"] == "false"
            assert isinstance(admission.outcome, RolloutFailure)
            assert admission.outcome.kind is FailureKind.MODEL_ERROR
            assert [call.status for call in admission.client.calls] == ["error"]
        await server.close()
    assert len(asked) == 2, "one call for each rollout, and none after it"


async def test_an_answer_that_cannot_be_told_ends_the_rollout_too(chat_client, monkeypatch):
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": [{"text": "ok"}]})
    monkeypatch.setattr(server_module, "_answer", lambda *_: 1 / 0)
    async with serving(spec) as admission:
        with pytest.raises(openai.InternalServerError, match="ZeroDivisionError"):
            await chat_client(admission).responses.create(model="m", input="q")
        assert isinstance(admission.outcome, RolloutFailure)


async def test_an_error_inside_a_stream_ends_the_rollout(serve, chat_client):
    """Many clients ask again when a stream breaks, however they are told not to."""
    asked = []

    async def handler(request):
        asked.append(request)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"index":0,"delta":{"content":"half an ans"}}]}\n\n')
        return response

    async with serving(ModelSpec(model="m", base_url=await serve(handler), max_retries=3)) as admission:
        messages: Any = [{"role": "user", "content": "q"}]
        for _ in range(4):
            with pytest.raises(openai.APIError):
                events = await chat_client(admission).chat.completions.create(model="m", messages=messages, stream=True)
                async for _ in events:
                    pass
        assert admission.ended.is_set()
    assert len(asked) == 1


async def test_many_programs_behind_one_address_do_not_end_each_other(chat_client):
    rules = [{"contains": "bad", "error": {"status": 400, "message": "too bad", "retryable": False}}, {"text": "ok"}]
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": rules})
    async with Gateway({"policy": spec}) as gateway:
        server = GatewayServer()
        await server.open()
        client = chat_client(server.admit(gateway.client("policy"), lasting=True))
        with pytest.raises(openai.BadRequestError, match="too bad"):
            await client.responses.create(model="m", input="bad")
        assert (await client.responses.create(model="m", input="good")).output_text == "ok"
        await server.close()


async def test_what_the_endpoints_dialect_cannot_say_is_the_requests_fault(endpoint, chat_client):
    async with serving(upstreams(endpoint)["messages"]) as admission:
        messages: Any = [{"role": "user", "content": "q"}]
        with pytest.raises(openai.BadRequestError, match="cannot be sent"):
            await chat_client(admission).chat.completions.create(
                model="m", messages=messages, response_format={"type": "json_object"}
            )


async def test_a_rate_limit_is_told_as_one(chat_client, claude_client):
    error = {"kind": "model_rate_limited", "status": 429, "message": "slow down", "retryable": False}
    messages: Any = [{"role": "user", "content": "q"}]
    async with serving(scripted_error(**error)) as admission:
        with pytest.raises(openai.RateLimitError, match="slow down") as limited:
            await chat_client(admission).chat.completions.create(model="m", messages=messages)
        assert limited.value.type == "rate_limit_error"
    async with serving(scripted_error(**error)) as admission:
        with pytest.raises(anthropic.RateLimitError, match="slow down"):
            await claude_client(admission).messages.create(model="m", max_tokens=9, messages=messages)


async def test_what_is_not_there_is_told_in_the_callers_shape(chat_client, claude_client):
    async with serving(scripted_error()) as admission:
        messages: Any = [{"role": "user", "content": "q"}]
        with pytest.raises(anthropic.NotFoundError, match="there is no POST") as missing:
            await claude_client(admission).messages.count_tokens(model="m", messages=messages)
        assert missing.value.body["error"]["type"] == "not_found_error"
        with pytest.raises(openai.NotFoundError, match="there is no POST"):
            await chat_client(admission).embeddings.create(model="m", input="q")


@pytest.mark.parametrize("after_s", [0.0, 0.1], ids=["at once", "after the headers"])
async def test_an_error_after_the_headers_is_an_error_event(monkeypatch, after_s, chat_client, claude_client):
    monkeypatch.setattr(server_module, "HEADERS_AFTER_S", 0.02)
    rules = [{"delay_s": after_s, "error": {"status": 400, "message": "too bad", "retryable": False}}]
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": rules})
    messages: Any = [{"role": "user", "content": "q"}]
    async with serving(spec) as admission:
        with pytest.raises(openai.APIError, match="too bad"):
            async for _ in await chat_client(admission).chat.completions.create(
                model="m", messages=messages, stream=True
            ):
                pass
        with pytest.raises(openai.APIError, match="too bad"):
            async for _ in await chat_client(admission).responses.create(model="m", input="q", stream=True):
                pass
        with pytest.raises(anthropic.APIError, match="too bad"):
            async for _ in await claude_client(admission).messages.create(
                model="m", max_tokens=9, messages=messages, stream=True
            ):
                pass


async def test_a_waiting_stream_gets_headers_at_once_and_signs_of_life(monkeypatch):
    monkeypatch.setattr(server_module, "HEADERS_AFTER_S", 0.01)
    monkeypatch.setattr(server_module, "KEEP_ALIVE_S", 0.02)
    rules = [{"delay_s": 0.15, "text": "late"}]
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": rules})
    async with serving(spec) as admission, aiohttp.ClientSession() as session:
        body = {"model": "m", "input": "q", "stream": True}
        async with session.post(admission.url + "/v1/responses", json=body) as answer:
            first = await answer.content.readline()
            assert admission.client.calls[0].status == "error", "the headers are there before the answer"
            rest = await answer.text()
    assert first.startswith(b":")
    assert rest.count(": waiting") >= 3
    assert "late" in rest


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_stream_that_the_endpoint_cuts_is_an_error_and_not_a_short_answer(serve, api, chat_client):
    async def handler(request):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        if api == "chat":
            await response.write(b'data: {"choices":[{"index":0,"delta":{"content":"half an ans"}}]}\n\n')
        else:
            await response.write(b'event: response.created\ndata: {"type":"response.created","response":{}}\n\n')
        return response

    spec = ModelSpec(model="m", base_url=await serve(handler), api=api, max_retries=0)
    async with serving(spec) as admission:
        client = chat_client(admission)
        with pytest.raises(openai.APIError, match="broke off"):
            if api == "chat":
                messages: Any = [{"role": "user", "content": "q"}]
                async for _ in await client.chat.completions.create(model="m", messages=messages, stream=True):
                    pass
            else:
                async for _ in await client.responses.create(model="m", input="q", stream=True):
                    pass
        assert admission.client.calls[0].status == "error"


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"max_calls": 1}, StopReason.CALL_BUDGET),
        ({"max_tokens": 20}, StopReason.TOKEN_BUDGET),
        ({"max_cost_usd": 2e-5}, StopReason.COST_BUDGET),
    ],
)
async def test_a_used_up_budget_ends_the_rollout(chat_client, budget, reason):
    rules = [{"text": "ok", "usage": {"prompt_tokens": 10, "completion_tokens": 10}}]
    parameters = {"rules": rules, "price": {"input": 1, "output": 1}}
    spec = ModelSpec(provider="scripted", model="s", parameters=parameters)
    async with serving(spec, budgets=Budgets(**budget)) as admission:
        client = chat_client(admission)
        await client.responses.create(model="m", input="q")
        assert not admission.ended.is_set()
        with pytest.raises(openai.BadRequestError, match="may make no more calls") as error:
            await client.responses.create(model="m", input="q")
        assert error.value.code == "budget_exhausted"
        assert error.value.response.headers["x-should-retry"] == "false"
        assert admission.ended.is_set()
        assert isinstance(admission.outcome, StopEpisode)
        assert admission.outcome.reason is reason


async def test_context_overflow_is_told_and_leaves_the_harness_to_compact(chat_client):
    async with serving(scripted_error(context_overflow=True, message="9000 > 8192")) as admission:
        with pytest.raises(openai.BadRequestError, match="9000 > 8192") as error:
            await chat_client(admission).responses.create(model="m", input="q")
        assert error.value.code == "context_length_exceeded"
        assert admission.outcome is None


async def test_a_rollout_is_reached_by_its_token_only_and_only_while_it_is_admitted():
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": [{"text": "ok"}]})
    async with serving(spec) as admission, aiohttp.ClientSession() as session:
        for path in ("/rollouts/guess/v1/responses", "/v1/responses"):
            async with session.post(admission.server.url + path, json={"input": "q"}) as answer:
                assert answer.status == 404
        async with session.get(admission.url + "/v1/models") as answer:
            assert (await answer.json())["data"][0]["id"] == "policy"
        async with session.head(admission.url) as answer:
            assert answer.status == 200
        admission.close()
        async with session.post(admission.url + "/v1/responses", json={"input": "q"}) as answer:
            assert answer.status == 404
        assert admission.client.calls == []


async def test_a_harness_that_hangs_up_ends_its_call():
    rules = [{"delay_s": 5, "text": "never"}]
    spec = ModelSpec(provider="scripted", model="s", concurrency=1, parameters={"rules": rules})
    async with serving(spec) as admission, aiohttp.ClientSession() as session:
        for stream in (False, True):
            body = {"model": "m", "input": "q", "stream": stream}
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1), session.post(admission.url + "/v1/responses", json=body) as answer:
                    await answer.read()
        await asyncio.sleep(0.1)
        upstream = admission.client._upstreams["policy"]
        assert upstream.limiter.in_flight == 0
        assert [call.status for call in admission.client.calls] == ["error", "error"]


async def test_sandboxes_without_a_network_use_the_unix_socket(tmp_path):
    spec = ModelSpec(provider="scripted", model="s", parameters={"rules": [{"text": "ok"}]})
    async with Gateway({"policy": spec}) as gateway:
        client: ModelClient = gateway.client("policy")
        server = GatewayServer(socket_path=tmp_path / "gw")
        await server.open()
        admission = server.admit(client)
        connector = aiohttp.UnixConnector(path=str(tmp_path / "gw"))
        url = f"http://gateway{admission.path}/v1/responses"
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(url, json={"input": "q"}) as answer,
        ):
            assert answer.status == 200
        await server.close()
