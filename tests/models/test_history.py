"""A conversation stays one, and the endpoint is told what it said, whatever a client's dialect makes of it in between."""

from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.contracts.model import ModelSpec
from gymflow.models.base import Item
from gymflow.models.dialects import function_call, message, reasoning, refusal, serve_chat, serve_messages
from gymflow.models.history import History
from tests.models.test_server import serving

USER: Item = {"type": "message", "role": "user", "content": "q"}
TURNS = 4


def thought(text: str, sealed: str | None = None) -> Item:
    """Reasoning as OpenAI's Responses gives it: a summary, and what it really was, sealed."""
    item: Item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}]}
    return item | ({"encrypted_content": sealed} if sealed else {})


def told(output: list[Item]) -> History:
    history = History()
    history.add(0, None, [USER], output, None)
    return history


ANSWERS = {
    "a summary": [thought("sum", "ENC"), message("four")],
    "sealed alone": [{"type": "reasoning", "summary": [], "encrypted_content": "ENC"}, message("four")],
    "two thoughts": [reasoning("one"), message("a"), reasoning("two"), function_call("c", "f", "{}")],
    "texts around a call": [message("a"), function_call("c", "f", "{}"), message("b")],
    "a text in parts": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
        }
    ],
    "malformed arguments": [function_call("c", "f", '{"a": 1'), function_call("d", "f", "[1]")],
    "a refusal": [reasoning("no"), refusal("I will not")],
    "nothing": [],
    "nothing but a thought": [reasoning("hm")],
    "an empty text": [message("")],
}


def sent_back(dialect: str, output: list[Item]) -> list[Item]:
    """An answer as a client of that dialect gets it, and sends it back."""
    if dialect == "chat":
        return serve_chat.decode_message(serve_chat.encode_answer(output))
    return serve_messages.decode_message({"role": "assistant", "content": serve_messages.encode_blocks(output)})


@pytest.mark.parametrize("dialect", ["chat", "messages"])
@pytest.mark.parametrize("output", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_known_again_from_every_dialect(dialect: str, output: list[Item]) -> None:
    items = [USER, *sent_back(dialect, output), {**USER, "content": "and then?"}]
    place = told(output).place(items, None)
    assert place.parent is not None
    assert place.restore(items) == [USER, *output, items[-1]]
    assert (place.covered, place.altered) == (1 + len(output), False)


@pytest.mark.parametrize(
    "answer",
    [
        [message("five")],
        [message("fou")],
        [message("four"), function_call("c", "f", "{}")],
        [function_call("c", "f", "{}")],
        [],
    ],
)
def test_another_answer_is_another_history(answer: list[Item]) -> None:
    place = told([thought("sum"), message("four")]).place([USER, *answer, {**USER, "content": "next"}], None)
    whole = answer[:1] == [message("four")]
    assert (place.parent is not None) is whole, "what follows the same answer is new, and not another answer"


def test_a_call_whose_arguments_were_cut_is_known_by_its_id_whatever_a_client_makes_of_them() -> None:
    history = told([function_call("c", "f", '{"path": "/a/b')])
    for arguments in ("{}", '{"path": "/a/b"}'):
        items = [
            USER,
            function_call("c", "f", arguments),
            {"type": "function_call_output", "call_id": "c", "output": "1"},
        ]
        assert history.place(items, None).parent is not None
    assert history.place([USER, function_call("d", "f", "{}"), USER], None).parent is None
    assert told([function_call("c", "f", "{}")]).place([USER, function_call("c", "f", '{"a": 1}')], None).parent is None


def test_of_two_answers_that_differ_in_their_reasoning_the_one_that_was_sent_back_is_continued() -> None:
    history = told([reasoning("first"), message("four")])
    history.add(1, None, [USER], [reasoning("second"), message("four")], None)
    for number, text in enumerate(("first", "second")):
        place = history.place([USER, reasoning(text), message("four"), USER], None)
        assert place.parent is not None
        assert (place.parent.index, place.altered) == (number, False)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from([reasoning("r"), message("a"), message("b"), function_call("c", "f", "{}")]), max_size=6)
)
def test_whatever_an_answer_is_made_of_chat_and_messages_continue_it(output: list[Item]) -> None:
    for dialect in ("chat", "messages"):
        items = [USER, *sent_back(dialect, output), {**USER, "content": "next"}]
        place = told(output).place(items, None)
        assert place.parent is not None
        assert place.restore(items) == [USER, *output, items[-1]]


def responses_answer(number: int) -> dict[str, Any]:
    sealed = {**thought("sum", f"ENC{number}"), "id": f"rs_{number}"}
    called = {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "f", "arguments": "{}"}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [sealed, called],
    }


def messages_answer(number: int) -> dict[str, Any]:
    content = [
        {"type": "thinking", "thinking": "hmm", "signature": f"SIG{number}"},
        {"type": "tool_use", "id": f"c{number}", "name": "f", "input": {}},
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "tool_use",
    }


async def by_chat(url: str) -> None:
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    history: list[Any] = [{"role": "user", "content": "q"}]
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="k", max_retries=0) as client:
        for _ in range(TURNS):
            answer = await client.chat.completions.create(model="m", messages=history, tools=tools)
            said = answer.choices[0].message
            history.append(said.model_dump(exclude_none=True))
            history += [{"role": "tool", "tool_call_id": call.id, "content": "1"} for call in said.tool_calls or ()]


async def by_messages(url: str) -> None:
    tools: Any = [{"name": "f", "input_schema": {"type": "object"}}]
    history: list[Any] = [{"role": "user", "content": "q"}]
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        for _ in range(TURNS):
            answer = await client.messages.create(model="m", max_tokens=9, messages=history, tools=tools)
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            history.append({"role": "assistant", "content": blocks})
            used = [block["id"] for block in blocks if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": identifier, "content": "1"} for identifier in used]
            history.append({"role": "user", "content": results})


@pytest.mark.parametrize(
    ("upstream", "client"), [("responses", by_chat), ("responses", by_messages), ("messages", by_chat)]
)
async def test_reasoning_is_handed_back_as_it_was_and_the_conversation_stays_one(serve, upstream, client) -> None:
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        answer = responses_answer if upstream == "responses" else messages_answer
        return web.json_response(answer(len(bodies)))

    provider = {"provider": "anthropic"} if upstream == "messages" else {"api": "responses"}
    async with serving(ModelSpec(model="m", base_url=await serve(handler), **provider)) as admission:
        await client(admission.url)
        calls = admission.client.calls
    assert [call.parent for call in calls] == [None, 0, 1, 2]
    assert [[item["type"] for item in call.new_input] for call in calls[1:]] == [["function_call_output"]] * 3
    if upstream == "responses":
        given = [item for item in bodies[-1]["input"] if item.get("type") == "reasoning"]
        assert given == [responses_answer(number)["output"][0] for number in (1, 2, 3)]
    else:
        given = [entry["content"] for entry in bodies[-1]["messages"] if entry["role"] == "assistant"]
        assert given == [messages_answer(number)["content"] for number in (1, 2, 3)]
