"""The public scoring faults: each gets the value that its report asks for. No policy of these cases is rejected."""

from pathlib import Path
from typing import Any

import orjson
from gymflow.verifiers.math import Math
from gymflow.verifiers.mcqa import Mcqa
from gymflow.verifiers.tool_calls import ToolCalls


def test_math_answers_get_the_value_that_the_report_asks_for(math_case: dict[str, Any], score: Any, said: Any) -> None:
    given, expected = math_case["input"], math_case["expected"]
    verdict = score(Math, {"expected_answer": given["gold"]}, said(given["pred"]))
    if isinstance(expected, str):
        assert expected.startswith("Not correct")
        assert not Path("/tmp/pwned").exists()
        correct = False
    else:
        correct = expected["correct"]
    assert verdict.reward == float(correct), verdict.reason
    assert (verdict.reason is None) == correct


def test_choices_are_read_as_the_report_asks_for(mcq_case: dict[str, Any], score: Any, said: Any) -> None:
    options, expected = mcq_case["input"]["options"], mcq_case["expected"]["choice"]
    row = {"options": options, "expected_answer": expected or options[0]}
    verdict = score(Mcqa, row, said(mcq_case["input"]["text"]))
    assert verdict.extracted_answer == expected
    assert verdict.reward == float(expected is not None)
    assert (verdict.reason is None) == (expected is not None)


def test_calls_are_valid_as_the_report_asks_for(call_case: dict[str, Any], score: Any, asked: Any) -> None:
    """The folding of strings is BFCL's own rule, so its parity case runs under the parameter that has it."""
    given = call_case["input"]
    calls = [
        (name, orjson.dumps(arguments).decode()) for call in given["model_calls"] for name, arguments in call.items()
    ]
    parameters = {"strings": "folded"} if call_case["id"] == "tc-string-fold" else None
    verdict = score(ToolCalls, {"possible_answers": given["possible_answers"]}, asked(*calls), parameters)
    assert verdict.reward == float(call_case["expected"]["valid"]), verdict.reason
    assert (verdict.reason is None) == call_case["expected"]["valid"]
