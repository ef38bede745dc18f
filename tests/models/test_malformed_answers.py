"""A 200 answer that is not what the dialect says is the endpoint's failure, whatever is wrong with it, and never the agent's."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymflow.contracts.trajectory import Usage
from gymflow.items import function_calls, output_text
from gymflow.models.dialects import DialectError, chat, messages, responses

ANSWERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (
        chat.decode_response,
        {
            "id": "c",
            "model": "m",
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "x",
                        "reasoning_content": "because",
                        "tool_calls": [{"id": "t", "function": {"name": "add", "arguments": "{}"}}],
                    },
                    "finish_reason": "stop",
                    "logprobs": None,
                }
            ],
            "usage": {
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        },
    ),
    "responses": (
        responses.decode_response,
        {
            "id": "r",
            "model": "m",
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "i", "summary": [{"type": "summary_text", "text": "because"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
                {"type": "function_call", "call_id": "t", "name": "add", "arguments": "{}"},
            ],
            "usage": {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 1}},
        },
    ),
    "messages": (
        messages.decode_response,
        {
            "id": "a",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "because", "signature": "s"},
                {"type": "text", "text": "x"},
                {"type": "tool_use", "id": "t", "name": "add", "input": {}},
            ],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 1},
        },
    ),
}
ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.just([])
    | st.just({})
    | st.just([1])
    | st.just({"a": 1})
    | st.just(["x"])
    | st.just([{}])
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from places(child, (*path, name))


@pytest.mark.parametrize("dialect", ANSWERS)
@given(data=st.data())
def test_one_odd_value_anywhere_is_read_or_refused(dialect: str, data: st.DataObject) -> None:
    decode, answer = ANSWERS[dialect]
    payload = copy.deepcopy(answer)
    *path, last = data.draw(st.sampled_from(list(places(answer))))
    holder = payload
    for step in path:
        holder = holder[step]
    holder[last] = data.draw(ODD)
    try:
        response = decode(payload)
    except DialectError:
        return
    assert isinstance(output_text(response.output), str)
    for call in function_calls(response.output):
        assert all(isinstance(call.get(name, ""), str) for name in ("call_id", "name", "arguments"))
    Usage.model_validate(response.usage.model_dump(), strict=True)
    assert all(count is None or 0 <= count < 2**63 for _, count in response.usage)
    assert {type(response.reported_model), type(response.response_id)} <= {str, type(None)}


@pytest.mark.parametrize("count", [-1, 1.5, "7", 10**30, True, [3]])
def test_a_count_that_is_none_is_not_reported(count: Any) -> None:
    assert chat.decode_usage({"prompt_tokens": count, "completion_tokens": 4.0}) == Usage(completion_tokens=4)
