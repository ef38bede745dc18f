"""Published NeMo Gym rollouts: their rows validate unchanged, and scoring the stored response gives the stored reward."""

import json
import re
from typing import Any

import pytest
from gymflow.verifiers.exact import Exact
from gymflow.verifiers.json_schema import JsonSchema
from gymflow.verifiers.math import Math
from gymflow.verifiers.mcqa import Mcqa
from gymflow.verifiers.tool_calls import ToolCalls

from gymflow.contracts.task import Task
from gymflow.verifiers import Evidence, Verdict, Verifier

FAMILIES: dict[str, tuple[type[Verifier[Any]], dict[str, Any]]] = {
    "mcqa": (Mcqa, {}),
    "bunsenbench_chemistry_mcq": (Mcqa, {}),
    "math_with_judge": (Math, {}),
    "polymath": (Math, {}),
    "string_match": (Exact, {}),
    "imo_gradingbench": (Exact, {"extraction": "last_line"}),
    "equivalence_rule": (Exact, {}),
    "hotpotqa_qa": (Exact, {"pattern": r'"answer":\s*"([^"]*)"', "match": "normalized"}),
    "xlam_fc": (ToolCalls, {}),
    "single_step_tool_use_with_argument_comparison": (ToolCalls, {}),
}


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_stored_response_gets_its_stored_reward(family: str, position: int, score: Any, peer: Any) -> None:
    verifier, parameters = FAMILIES[family]
    published = peer(family)[position]
    row = Task.model_validate(published["task"]).verifier_fields
    verdict = score(verifier, row, _evidence(published), parameters)
    assert verdict.reward == published["rollout"]["reward"], verdict.reason


@pytest.mark.parametrize("position", [0, 1])
def test_gpqa_without_its_row_is_scored_from_the_options_in_its_prompt(position: int, score: Any, peer: Any) -> None:
    published = peer("gpqa_diamond")[position]
    options = [{letter: text} for letter, text in re.findall(r"^([A-D]): (.*)$", _prompt(published), re.MULTILINE)]
    assert len(options) == 4
    row = {"options": options, "expected_answer": published["rollout"]["expected_answer"]}
    for parameters in ({}, {"mode": "strict_single_letter_boxed"}):
        verdict = score(Mcqa, row, _evidence(published), parameters)
        assert verdict.reward == published["rollout"]["reward"]
        assert verdict.extracted_answer == published["rollout"]["extracted_answer"]


def test_a_fenced_structured_output_is_worth_what_the_parameter_says(score: Any, peer: Any) -> None:
    """The published 0.0 is for the code fence: the object in it satisfies the schema of its prompt."""
    published = peer("structured_outputs")[0]
    properties = json.loads(re.search(r"Schema structure: (\{.*\})\n", _prompt(published))[1])
    row = {"schema": json.dumps({"type": "object", "properties": properties, "required": list(properties)})}
    assert (
        score(JsonSchema, row, _evidence(published), {"extraction": "whole"}).reward
        == published["rollout"]["reward"]
        == 0.0
    )
    assert score(JsonSchema, row, _evidence(published)).reward == 1.0


def test_a_bare_structured_output_satisfies_the_schema_of_its_prompt(score: Any, peer: Any) -> None:
    published = peer("structured_outputs")[1]
    prompt = _prompt(published)
    schema, _ = json.JSONDecoder().raw_decode(prompt, prompt.index("{", prompt.index("matching this schema")))
    row = {"schema": schema, "schema_type": "json", "schema_fields_count": "12"}
    assert (
        score(JsonSchema, row, _evidence(published), {"extraction": "whole"}).reward == published["rollout"]["reward"]
    )


def test_a_row_with_its_own_pattern_is_read_by_it(score: Any, said: Any) -> None:
    row = {
        "options": [{"A": "Karyotyping"}, {"B": "PCR"}],
        "expected_answer": "B",
        "grading_mode": "strict_single_letter_boxed",
        "template_metadata": {"output_regex": r"ANSWER IS\s*([A-Za-z])\s*", "template_id": "mcqa_generated_019"},
    }
    assert score(Mcqa, row, said("Answer is A? No.\nANSWER IS B")).reward == 1.0
    assert score(Mcqa, row, said(r"\boxed{B}")).reward == 0.0
    assert score(Mcqa, row, said(r"\boxed{B}"), {"mode": "lenient"}).reward == 1.0


def _evidence(published: dict[str, Any]) -> Evidence:
    return Evidence(response={"output": published["rollout"]["response"]["output"]})


def _prompt(published: dict[str, Any]) -> str:
    messages = published["rollout"]["responses_create_params"]["input"]
    return "\n".join(message["content"] for message in messages)


def test_every_failing_peer_verdict_says_why(score: Any, peer: Any) -> None:
    for family, (verifier, parameters) in FAMILIES.items():
        for published in peer(family):
            verdict: Verdict = score(
                verifier, Task.model_validate(published["task"]).verifier_fields, _evidence(published), parameters
            )
            assert (verdict.reward == 1.0) == (verdict.reason is None)
