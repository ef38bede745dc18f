"""Function calls against expected ones."""

from typing import Any

import pytest
from gymflow.verifiers.tool_calls import ToolCalls, ToolCallsTask
from pydantic import ValidationError

from gymflow.contracts.trajectory import ToolCall, Trajectory, Turn
from gymflow.verifiers import Evidence

WEATHER = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 1},
            "unit": {"type": "string"},
        },
        "required": ["city"],
    },
}


def expect(*calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"expected_calls": [{"name": name, "arguments": arguments} for name, arguments in calls], **more}


@pytest.mark.parametrize(
    ("expected", "given", "reward"),
    [
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1.0, {"c": 2}], "a": 1.0}, 1.0),
        ({"a": 1}, {"a": 2}, 0.0),
        ({"a": 1}, {"a": "1"}, 0.0),
        ({"a": 1}, {"a": True}, 0.0),
        ({"a": True}, {"a": 1}, 0.0),
        ({"a": None}, {"a": None}, 1.0),
        ({"a": None}, {}, 0.0),
        ({"a": [1, 2]}, {"a": [2, 1]}, 0.0),
        ({"a": "x"}, {"a": "x", "b": 1}, 0.0),
        ({}, {}, 1.0),
        ({"a": 2**70}, {"a": 2**70 + 1}, 0.0),
    ],
)
def test_arguments_compare_by_value(expected: Any, given: Any, reward: float, score: Any, asked: Any) -> None:
    verdict = score(ToolCalls, expect(("f", expected)), asked(("f", given)))
    assert verdict.reward == reward
    assert (verdict.reason is None) == (reward == 1.0)


@pytest.mark.parametrize("arguments", ["", "null", "{", "[1]", '"x"', "NaN", '{"a": NaN}', "[" * 5000, "1" * 5000])
def test_malformed_arguments_are_wrong_and_never_raise(arguments: str, score: Any, asked: Any) -> None:
    verdict = score(ToolCalls, expect(("f", {"a": 1})), asked(("f", arguments)))
    assert verdict.reward == 0.0
    assert verdict.reason


def test_defaults_of_the_tool_may_be_given_or_left_out(score: Any, asked: Any) -> None:
    row = expect(("weather", {"city": "Rome", "days": 1}), tools=[WEATHER])
    assert score(ToolCalls, row, asked(("weather", {"city": "Rome"}))).reward == 1.0
    assert score(ToolCalls, row, asked(("weather", {"city": "Rome", "days": 1, "unit": None}))).reward == 1.0
    assert score(ToolCalls, row, asked(("weather", {"city": "Rome", "days": 2}))).reward == 0.0
    assert score(ToolCalls, row, asked(("weather", {"city": "Rome", "unit": "C"}))).reward == 0.0
    assert score(ToolCalls, row, asked(("weather", {"city": "Rome", "place": None}))).reward == 0.0


def test_parallel_calls_match_in_any_order_unless_order_is_asked_for(score: Any, asked: Any) -> None:
    row = expect(("f", {"a": 1}), ("g", {}), ("f", {"a": 2}))
    swapped = asked(("f", {"a": 2}), ("f", {"a": 1}), ("g", {}))
    assert score(ToolCalls, row, swapped).reward == 1.0
    assert score(ToolCalls, row, swapped, {"ordered": True}).reward == 0.0
    assert score(ToolCalls, row, asked(("f", {"a": 1}), ("g", {}), ("f", {"a": 2})), {"ordered": True}).reward == 1.0


def test_a_batch_in_the_row_may_ask_for_its_order(score: Any, asked: Any) -> None:
    calls = [{"name": "f", "arguments": "{}"}, {"name": "g", "arguments": "{}"}]
    action = {"type": "function_call_batch", "ordered": True, "calls": calls}
    assert score(ToolCalls, {"expected_action": action}, asked(("f", {}), ("g", {}))).reward == 1.0
    assert score(ToolCalls, {"expected_action": action}, asked(("g", {}), ("f", {}))).reward == 0.0


def test_partial_credit_is_that_of_the_best_assignment(score: Any, asked: Any) -> None:
    row = expect(("f", {"a": 1, "b": 1}), ("f", {"a": 2, "b": 2}))
    made = asked(("f", {"a": 2, "b": 1}), ("f", {"a": 1, "b": 1}))
    assert score(ToolCalls, row, made).reward == 0.0
    assert score(ToolCalls, row, made, {"credit": "calls"}).reward == 0.5
    assert score(ToolCalls, row, made, {"credit": "arguments"}).reward == 0.75
    assert score(ToolCalls, row, made).components == {"calls": 0.5, "arguments": 0.75}


@pytest.mark.parametrize(
    ("accepted", "given", "valid"),
    [
        ({"a": [{"k": [1, 2], "m": ["", 3]}]}, {"a": {"k": 2}}, True),
        ({"a": [{"k": [1, 2]}]}, {"a": {"k": 3}}, False),
        ({"a": [{"k": [1, 2]}]}, {"a": {"k": 1, "z": 1}}, False),
        ({"a": [[1.0, 2.0]]}, {"a": [1, 2]}, True),
        ({"a": [[{"k": ["x", "y"]}]]}, {"a": [{"k": "y"}]}, True),
    ],
)
def test_possible_answers_nest(accepted: Any, given: Any, valid: bool, score: Any, asked: Any) -> None:
    assert score(ToolCalls, {"possible_answers": [{"f": accepted}]}, asked(("f", given))).reward == float(valid)


def test_no_call_may_be_what_is_expected(score: Any, asked: Any, said: Any) -> None:
    assert score(ToolCalls, expect(), said("I can answer that myself.")).reward == 1.0
    assert score(ToolCalls, expect(), asked(("f", {}))).reward == 0.0
    assert score(ToolCalls, {"expected_action": {"type": "message", "content": "Hello"}}, said("Hi")).reward == 1.0
    assert score(ToolCalls, {"expected_action": {"type": "message", "content": "Hello"}}, said(" ")).reward == 0.0


def test_executed_calls_are_read_before_those_of_the_last_response(score: Any) -> None:
    turns = [Turn(index=i, tool_calls=[ToolCall(call_id=str(i), name="f", arguments=f'{{"a": {i}}}')]) for i in (1, 2)]
    evidence = Evidence(response={"output": []}, trajectory=Trajectory(turns=turns))
    assert score(ToolCalls, expect(("f", {"a": 1}), ("f", {"a": 2})), evidence).reward == 1.0


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"expected_calls": [], "expected_answers": []},
        {"expected_calls": [{"arguments": {}}]},
        {"expected_calls": [{"name": "f", "arguments": "{"}]},
        {"expected_calls": [{"name": "f", "arguments": "[1]"}]},
        {"expected_action": {"type": "function_call", "arguments": "{}"}},
        {"expected_action": {"type": "function_call", "name": "f", "arguments": "{"}},
        {"expected_action": {"type": "function_call_batch"}},
        {"possible_answers": [{"f": {"a": 1}}]},
    ],
)
def test_faulty_rows_are_found_by_validation(row: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToolCallsTask.model_validate(row)


def test_the_reason_names_call_and_argument(score: Any, asked: Any) -> None:
    row = expect(("weather", {"city": "Rome"}))
    assert (
        score(ToolCalls, row, asked(("weather", {"city": "Oslo"}))).reason == 'weather: city is "Oslo", expected "Rome"'
    )
    assert score(ToolCalls, row, asked(("search", {}))).reason == "weather was not called"
    twice = score(ToolCalls, row, asked(("weather", {"city": "Rome"}), ("weather", {"city": "Rome"})))
    assert twice.reason == "2 calls, expected 1"
