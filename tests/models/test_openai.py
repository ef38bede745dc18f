"""The OpenAI-compatible provider: what it sends, and what it makes of the answers that are not answers."""

from typing import Any

import orjson
import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import InputError
from gymflow.models import ContextOverflow, Gateway, ModelError, ModelRequest
from gymflow.models.dialects import reasoning
from gymflow.models.http import error_words, retry_after_s
from gymflow.models.openai import OpenAI
from tests.models.conftest import chat_answer
from tests.support.endpoint import start_endpoint

ASK = ModelRequest([{"role": "user", "content": "2 + 2?"}])


async def complete(spec, request: ModelRequest = ASK):
    provider = OpenAI(spec)
    await provider.open()
    try:
        return await provider.complete(request)
    finally:
        await provider.close()


def answering(status: int = 200, body: Any = None, text: str | None = None, **fields: Any):
    async def handler(request: web.Request) -> web.Response:
        if text is not None:
            return web.Response(text=text, status=status, **fields)
        return web.json_response(body, status=status, **fields)

    return handler


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_whole_tool_conversation_over_both_apis(spec, api):
    with start_endpoint(tool_turns=1) as endpoint:
        provider = OpenAI(spec(endpoint.url, model="fake-model", api=api))
        await provider.open()
        await provider.probe()
        tools = [
            {
                "type": "function",
                "name": "add",
                "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
            }
        ]
        history = [{"role": "user", "content": "[[answer:seven]]"}]
        first = await provider.complete(ModelRequest(history, tools=tools))
        call = first.output[0]
        assert (first.finish_reason, call["name"], call["arguments"]) == ("tool_calls", "add", '{"a": 1}')
        history += [*first.output, {"type": "function_call_output", "call_id": call["call_id"], "output": "7"}]
        last = await provider.complete(ModelRequest(history, tools=tools))
        assert (last.finish_reason, last.output[0]["content"][0]["text"]) == ("stop", "seven")
        assert (last.usage.prompt_tokens, last.usage.completion_tokens, last.reported_model) == (100, 20, "fake-model")
        await provider.close()


async def test_the_key_and_the_sampling_are_sent(serve, spec, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "key-1")
    seen: dict[str, Any] = {}

    async def handler(request):
        seen["headers"], seen["body"] = request.headers, await request.json()
        return web.json_response(chat_answer())

    parameters = {"headers": {"X-Team": "${env:MODEL_KEY}-t"}}
    sampling = Sampling(temperature=0.5, max_output_tokens=9, reasoning_effort="low", extra={"min_p": 0.1})
    request = ModelRequest(ASK.input, sampling=sampling, seed=3)
    await complete(spec(await serve(handler), api_key="${env:MODEL_KEY}", parameters=parameters), request)
    assert seen["headers"]["authorization"] == "Bearer key-1"
    assert seen["headers"]["x-team"] == "key-1-t"
    assert seen["body"] == {
        "model": "m",
        "messages": [{"role": "user", "content": "2 + 2?"}],
        "temperature": 0.5,
        "max_tokens": 9,
        "reasoning_effort": "low",
        "seed": 3,
        "min_p": 0.1,
    }


async def test_an_endpoint_of_ones_own_is_sent_no_key_unless_one_is_named(serve, spec, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")

    async def handler(request):
        return web.json_response(chat_answer(request.headers.get("authorization", "none")))

    response = await complete(spec(await serve(handler)))
    assert response.output[0]["content"][0]["text"] == "none"


async def test_reasoning_is_kept_and_handed_back_under_the_name_it_came_under(serve, spec):
    bodies = []

    async def handler(request):
        bodies.append(await request.json())
        message = {"role": "assistant", "content": "4", "reasoning": "two and two"}
        return web.json_response(chat_answer() | {"choices": [{"message": message, "finish_reason": "stop"}]})

    provider = OpenAI(spec(await serve(handler)))
    await provider.open()
    first = await provider.complete(ASK)
    assert first.output[0] == reasoning("two and two")
    await provider.complete(ModelRequest([*ASK.input, *first.output, {"role": "user", "content": "sure?"}]))
    await provider.close()
    assert bodies[1]["messages"][1] == {"role": "assistant", "content": "4", "reasoning": "two and two"}


@pytest.mark.parametrize(
    "body",
    [
        {"error": "context length 9000 > 8192"},
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, you requested 9000",
                "code": 400,
            }
        },
        {"error": {"message": "Your input exceeds it", "code": "context_length_exceeded"}},
        {"object": "error", "message": "the request exceeds the available context size (9000 > 8192)", "code": 400},
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 8192 maximum"},
        },
    ],
)
async def test_a_history_that_outgrew_the_context_is_told_apart(serve, spec, body):
    with pytest.raises(ContextOverflow) as overflow:
        await complete(spec(await serve(answering(400, body))))
    assert error_words(orjson.dumps(body))[1] == str(overflow.value)


async def test_a_refused_key_is_named_and_never_shown(serve, spec, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "value-of-the-key")
    body = {"error": {"message": "Incorrect API key provided: value-of-the-key."}}
    with pytest.raises(ModelError) as refused:
        await complete(spec(await serve(answering(401, body)), api_key="${env:MODEL_KEY}"))
    assert "${env:MODEL_KEY}" in refused.value.message
    assert "Incorrect API key provided: ***." in refused.value.message
    assert "value-of-the-key" not in refused.value.message
    assert not refused.value.retryable


@pytest.mark.parametrize(
    ("handler", "words", "retryable"),
    [
        (answering(200, {"id": "x", "choices": [], "usage": {"total_tokens": 0}}), "no choices", True),
        (answering(200, text="<html>Welcome</html>"), "not a JSON object: <html>Welcome", True),
        (answering(200, [1, 2]), "not a JSON object", True),
        (answering(200, {"error": {"message": "upstream overloaded", "code": 502}}), "502: upstream overloaded", True),
        (answering(500, text="boom"), "answered 500: boom", True),
        (answering(500, text=""), r"answered 500: \(no words\)", True),
        (answering(404, {"detail": "Not Found"}), "answered 404: Not Found", False),
        (
            answering(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
            "quota",
            False,
        ),
        (
            answering(308, text="", headers={"location": "https://h/v1"}),
            "redirects to https://h/v1; set base_url",
            False,
        ),
    ],
)
async def test_errors_carry_the_endpoints_own_words(serve, spec, handler, words, retryable):
    with pytest.raises(ModelError, match=words) as error:
        await complete(spec(await serve(handler)))
    assert (error.value.kind, error.value.retryable) == (FailureKind.MODEL_ERROR, retryable)


async def test_an_answer_that_breaks_off_is_an_error_and_never_a_short_answer(serve, spec):
    async def handler(request):
        response = web.StreamResponse(headers={"content-length": "500", "content-type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        request.transport.close()
        return response

    with pytest.raises(ModelError, match=r"broke off its answer|unreachable") as error:
        await complete(spec(await serve(handler)))
    assert error.value.retryable


async def test_a_closed_port_is_unreachable_and_named(spec, unused_tcp_port):
    with pytest.raises(ModelError, match=f"http://u:.*@127.0.0.1:{unused_tcp_port}/v1 is unreachable") as error:
        await complete(spec(f"http://u:hunter2@127.0.0.1:{unused_tcp_port}/v1"))
    assert error.value.kind is FailureKind.MODEL_UNREACHABLE
    assert "hunter2" not in error.value.message


async def test_a_content_filter_is_an_outcome_and_not_a_failure(serve, spec):
    filtered = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    assert (await complete(spec(await serve(answering(200, filtered))))).finish_reason == "content_filter"
    azure = {"error": {"message": "The response was filtered", "code": "content_filter"}}
    response = await complete(spec(await serve(answering(400, azure))))
    assert (response.finish_reason, response.output) == ("content_filter", [])


async def test_a_model_that_is_not_served_is_named_with_the_nearest_one(serve, spec):
    async def handler(request):
        if request.method == "GET":
            return web.json_response({"data": [{"id": "qwen3-8b"}, {"id": "llama"}]})
        return web.json_response({"error": {"message": "The model `qwen3-8` does not exist."}}, status=404)

    provider = OpenAI(spec(await serve(handler), model="qwen3-8"))
    await provider.open()
    with pytest.raises(ModelError, match=r"does not exist\..*did you mean 'qwen3-8b'"):
        await provider.probe()
    await provider.close()


async def test_text_that_utf8_cannot_carry_and_large_integers_are_sent(serve, spec):
    async def handler(request):
        return web.json_response(chat_answer((await request.json())["messages"][0]["content"]))

    schema = {"type": "object", "properties": {"n": {"maximum": 2**70}}}
    tools = [{"type": "function", "name": "f", "parameters": schema}]
    request = ModelRequest([{"role": "user", "content": "half \ud83d"}], tools=tools)
    response = await complete(spec(await serve(handler)), request)
    assert response.output[0]["content"][0]["text"] == "half \ud83d"


def test_a_model_without_a_name_or_with_an_unknown_parameter_is_refused(spec):
    with pytest.raises(InputError, match="needs `model`"):
        OpenAI(spec("http://h/v1", model=""))
    with pytest.raises(InputError, match="'max_token_field'"):
        OpenAI(spec("http://h/v1", parameters={"max_token_field": "x"}))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert retry_after_s(headers) == seconds


async def test_a_key_that_the_endpoint_echoes_is_not_recorded(serve, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "value-of-the-key")

    async def handler(request):
        key = request.headers["authorization"].removeprefix("Bearer ")
        return web.json_response(chat_answer(id=f"id-{key}", model=f"model-{key}"))

    spec = ModelSpec(model="m", base_url=await serve(handler), api_key="${env:MODEL_KEY}")
    async with Gateway({"policy": spec}) as gateway:
        client = gateway.client("policy")
        await client.create(ASK)
    assert (client.calls[0].response_id, client.calls[0].reported_model) == ("id-***", "model-***")


def test_openai_itself_is_handed_back_only_reasoning_that_it_can_read():
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}
    request = ModelRequest([*ASK.input, {"type": "reasoning", "id": "rs_0", "summary": []}, sealed])
    official = OpenAI(ModelSpec(model="m", api="responses")).encode(request)
    assert official["input"] == [*ASK.input, sealed]
    other = OpenAI(ModelSpec(model="m", api="responses", base_url="http://127.0.0.1:1/v1")).encode(request)
    assert other["input"] == request.input


@pytest.mark.parametrize("listed", [{"data": [{"id": 7}]}, {"data": {"id": 1}}, {"data": [[]]}, [1], "m"], ids=repr)
async def test_a_list_of_models_that_is_none_settles_nothing(serve, spec, listed):
    async def handler(request):
        return web.json_response(listed if request.method == "GET" else {"error": {"message": "no", "code": 10**12}})

    provider = OpenAI(spec(await serve(handler)))
    await provider.open()
    with pytest.raises(ModelError, match="answered 500: no") as failed:
        await provider.probe()
    assert failed.value.status == 500
    await provider.close()


@pytest.mark.parametrize(("given", "seconds"), [("1500", 1.5), ("inf", None), ("nan", None), ("-5", 0.0), ("x", None)])
def test_only_a_number_of_milliseconds_is_a_wait(given, seconds):
    assert retry_after_s({"retry-after-ms": given}) == seconds
