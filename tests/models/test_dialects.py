"""Conversions between dialects keep what a conversation says."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.contracts.model import Sampling
from gymflow.contracts.trajectory import Usage
from gymflow.models import wire
from gymflow.models.base import Item, ModelRequest, ModelResponse
from gymflow.models.dialects import (
    DialectError,
    chat,
    function_call,
    message,
    messages,
    reasoning,
    refusal,
    responses,
    serve_chat,
    serve_messages,
    serve_responses,
)
from gymflow.models.history import same_item

quick = settings(max_examples=20, deadline=None)
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
NAME = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
ARGUMENTS = st.dictionaries(NAME, TEXT | st.integers(-(2**63), 2**63) | st.booleans(), max_size=3).map(
    lambda d: wire.dumps(d).decode()
)


def user(text: str) -> Item:
    return {"type": "message", "role": "user", "content": text}


@st.composite
def conversations(draw: st.DrawFn) -> list[Item]:
    """A system message, then user messages and answers with reasoning, text and parallel calls, each call answered."""
    items: list[Item] = [{"type": "message", "role": "system", "content": draw(TEXT)}] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 3))):
        items.append(user(draw(TEXT)))
        if draw(st.booleans()):
            items.append(reasoning(draw(TEXT)))
        calls = [
            function_call(f"call_{number}_{k}", draw(NAME), draw(ARGUMENTS)) for k in range(draw(st.integers(0, 3)))
        ]
        if draw(st.booleans()) or not calls:
            items.append(message(draw(TEXT)))
        items += calls
        items += [{"type": "function_call_output", "call_id": call["call_id"], "output": draw(TEXT)} for call in calls]
    return items


@st.composite
def answers(draw: st.DrawFn) -> ModelResponse:
    output: list[Item] = [reasoning(draw(TEXT))] if draw(st.booleans()) else []
    calls = [function_call(f"call_{k}", draw(NAME), draw(ARGUMENTS)) for k in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()) or not calls:
        output.append(message(draw(TEXT)))
    reason = "tool_calls" if calls else draw(st.sampled_from(["stop", "length", "content_filter"]))
    count = st.integers(0, 10**6)
    usage = Usage(
        prompt_tokens=draw(count),
        completion_tokens=draw(count),
        cached_tokens=draw(count),
        reasoning_tokens=draw(count),
    )
    return ModelResponse(output + calls, reason, usage, reported_model="m", response_id="r")  # type: ignore[arg-type]


@quick
@given(conversations())
def test_a_conversation_survives_chat_and_back(items: list[Item]):
    messages = chat.encode_messages(items)
    assert [item for entry in messages for item in serve_chat.decode_message(entry)] == items


@quick
@given(answers())
def test_an_answer_survives_chat_and_back(answer: ModelResponse):
    assert chat.decode_response(serve_chat.encode_response(answer, "m")) == answer


@quick
@given(answers())
def test_an_answer_survives_responses_and_back(answer: ModelResponse):
    decoded = responses.decode_response(serve_responses.encode_response(answer, "m"))
    assert [_bare(item) for item in decoded.output] == answer.output
    assert (decoded.finish_reason, decoded.usage, decoded.response_id) == (answer.finish_reason, answer.usage, "r")


@quick
@given(conversations())
def test_a_conversation_survives_messages_and_back(items: list[Item]):
    """Signed thinking is kept; what was not signed is left out, as the API would refuse it."""
    signed = [item | {"encrypted_content": "sig"} if item.get("type") == "reasoning" else item for item in items]
    request = serve_messages.decode_request(messages.encode_request(ModelRequest(signed), "m"))
    system = [user(request.instructions) | {"role": "system"}] if request.instructions else []
    assert all(same_item(one, other) for one, other in zip(system + request.input, signed, strict=True))
    unsigned = [item for entry in messages.encode_messages(items) for item in serve_messages.decode_message(entry)]
    assert not any(item["type"] == "reasoning" for item in unsigned)


@quick
@given(answers())
def test_an_answer_survives_messages_and_back(answer: ModelResponse):
    answer.usage = Usage(prompt_tokens=100, completion_tokens=5, cached_tokens=30, cache_write_tokens=20)
    if answer.finish_reason == "content_filter":
        answer.finish_reason = "refusal"
    decoded = messages.decode_response(serve_messages.encode_response(answer, "m"))
    kept = ("type", "role", "content", "call_id", "name", "arguments", "summary")
    assert [{key: item[key] for key in kept if key in item} for item in decoded.output] == [
        item if "arguments" not in item else item | {"arguments": wire.dumps(wire.loads(item["arguments"])).decode()}
        for item in answer.output
    ]
    assert (decoded.finish_reason, decoded.usage) == (answer.finish_reason, answer.usage)


@quick
@given(conversations(), st.booleans())
def test_a_request_survives_both_dialects(items: list[Item], parallel: bool):
    request = ModelRequest(
        input=items,
        tools=[{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}],
        sampling=Sampling(temperature=0.0, top_p=0.5, top_k=3, max_output_tokens=7, stop=["x"], frequency_penalty=0.1),
        seed=5,
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=parallel,
        text={
            "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
            "verbosity": "low",
        },
        extra={"chat_template_kwargs": {"enable_thinking": False}},
    )
    assert serve_chat.decode_request(chat.encode_request(request, "m")) == request
    assert serve_responses.decode_request(responses.encode_request(request, "m")) == request


def test_a_request_survives_messages_where_the_api_has_words_for_it():
    request = ModelRequest(
        input=[{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}],
        instructions="be brief",
        tools=[{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}],
        sampling=Sampling(temperature=0.0, top_p=0.5, top_k=3, max_output_tokens=7, stop=["x"], reasoning_effort="low"),
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
        text={"format": {"type": "json_schema", "name": "output", "schema": {"type": "object"}}},
    )
    assert serve_messages.decode_request(messages.encode_request(request, "m")) == request
    with pytest.raises(DialectError, match="no presence_penalty"):
        messages.encode_request(ModelRequest([], sampling=Sampling(presence_penalty=1.0)), "m")


def test_what_claude_code_sends_is_read():
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "b"},
        ],
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": []},
        "metadata": {"user_id": "{}"},
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}, "defer_loading": True}],
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "system", "content": "mind the gap"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"c": "ls"}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}],
            },
        ],
    }
    request = serve_messages.decode_request(body)
    assert (request.instructions, request.extra) == ("a\n\nb", {})
    assert [item.get("role") or item["type"] for item in request.input] == [
        "user",
        "system",
        "function_call",
        "function_call_output",
    ]
    chat.encode_request(request, "m")


def test_malformed_arguments_become_an_object_where_the_api_wants_one():
    assert messages.arguments_object('{"a": 1}') == {"a": 1}
    assert messages.arguments_object("[1]") == {"malformed_arguments": "[1]"}
    assert messages.arguments_object('{"a": ') == {"malformed_arguments": '{"a": '}


def test_parallel_calls_and_reasoning_become_one_assistant_message():
    calls = [function_call("a", "f", "{}"), function_call("b", "g", "{}")]
    outputs = [{"type": "function_call_output", "call_id": c["call_id"], "output": "1"} for c in calls]
    encoded = chat.encode_messages([user("q"), reasoning("hm"), message("so"), *calls, *outputs], "be kind")
    assert [entry["role"] for entry in encoded] == ["system", "user", "assistant", "tool", "tool"]
    assert encoded[2]["reasoning_content"] == "hm"
    assert encoded[2]["content"] == "so"
    assert [call["id"] for call in encoded[2]["tool_calls"]] == ["a", "b"]


def test_text_between_a_call_and_its_output_stays_in_the_calling_message():
    items = [
        user("q"),
        function_call("a", "f", "{}"),
        message("wait"),
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]
    assert [entry["role"] for entry in chat.encode_messages(items)] == ["user", "assistant", "tool"]


def test_zero_is_sent_and_none_is_not():
    body = chat.encode_request(ModelRequest([user("q")], sampling=Sampling(temperature=0.0)), "m")
    assert body == {"model": "m", "messages": [{"role": "user", "content": "q"}], "temperature": 0.0}


@pytest.mark.parametrize("arguments", ["[1,2]", "7", '"x"', "null", '{"a": ', ""])
def test_arguments_in_a_history_are_always_a_json_object(arguments: str):
    assert isinstance(orjson.loads(chat.wire_arguments(arguments)), dict)
    assert chat.wire_arguments('{"a": 1}') == '{"a": 1}'


def test_images_are_kept_in_both_directions():
    content = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
    ]
    items = [{"type": "message", "role": "user", "content": content}]
    encoded = chat.encode_messages(items)
    assert encoded[0]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,AA", "detail": "low"},
    }
    assert serve_chat.decode_message(encoded[0]) == items


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "web_search_call", "id": "w"}, "items of type 'web_search_call'"),
        ({"role": "robot", "content": "x"}, "role 'robot'"),
        ({"role": "user", "content": [{"type": "hologram"}]}, "content of type 'hologram'"),
    ],
)
def test_what_chat_cannot_say_is_refused_by_name(item: Item, words: str):
    with pytest.raises(DialectError, match=words):
        chat.encode_messages([item])


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [{}]},
        {"choices": [{"message": {}, "finish_reason": "error"}]},
    ],
)
def test_a_chat_answer_without_an_answer_is_an_error(payload: dict[str, Any]):
    with pytest.raises(DialectError):
        chat.decode_response(payload)


def test_finish_reasons_of_servers_that_say_stop_beside_calls_or_refusals():
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]
    called = chat.decode_response(
        {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "stop"}]}
    )
    assert (called.finish_reason, called.output) == ("tool_calls", [function_call("a", "f", '{"x":1}')])
    refused = chat.decode_response(
        {"choices": [{"message": {"content": None, "refusal": "no"}, "finish_reason": "stop"}]}
    )
    assert (refused.finish_reason, refused.output) == ("refusal", [refusal("no")])


def test_vllm_token_ids_are_taken_and_must_agree_with_their_logprobs():
    choice = {"message": {"content": "a"}, "finish_reason": "stop", "token_ids": [7, 2]}
    logprobs = {"content": [{"logprob": -0.5}, {"logprob": 0.0}]}
    response = chat.decode_response({"choices": [choice | {"logprobs": logprobs}], "prompt_token_ids": [1, 2, 3]})
    assert response.tokens is not None
    assert (response.tokens.prompt, response.tokens.completion, response.tokens.logprobs) == (
        [1, 2, 3],
        [7, 2],
        [-0.5, 0.0],
    )
    with pytest.raises(DialectError, match="2 token ids but 1 log-prob"):
        short = {"content": logprobs["content"][:1]}
        chat.decode_response({"choices": [choice | {"logprobs": short}], "prompt_token_ids": [1]})


def test_a_failed_or_empty_response_is_an_error_and_a_cut_one_is_not():
    with pytest.raises(DialectError, match="overloaded"):
        responses.decode_response({"status": "failed", "output": [], "error": {"message": "overloaded"}})
    with pytest.raises(DialectError, match="no output"):
        responses.decode_response({"status": "completed", "output": []})
    cut = {"status": "incomplete", "output": [message("a")], "incomplete_details": {"reason": "max_output_tokens"}}
    assert responses.decode_response(cut).finish_reason == "length"


def test_stateful_responses_requests_are_refused():
    with pytest.raises(DialectError, match="previous_response_id"):
        serve_responses.decode_request({"input": "x", "previous_response_id": "r"})


def _bare(item: Item) -> Item:
    """An item without what serving adds to it."""
    bare = {key: value for key, value in item.items() if key not in ("id", "status")}
    if bare.get("type") == "message":
        keep = ("type", "text", "refusal")
        bare["content"] = [{key: part[key] for key in keep if key in part} for part in bare["content"]]
    return bare
