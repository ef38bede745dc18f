"""JSON answers under a schema."""

import json
from typing import Any

import pytest
from gymflow.verifiers.json_schema import JsonSchema, JsonSchemaTask
from pydantic import ValidationError

from gymflow.verifiers import VerifierError, VerifierTimeout, json_schema

SCHEMA = {
    "type": "object",
    "required": ["name", "age"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "mail": {"format": "email"}},
}
GOOD = '{"name": "Ada", "age": 36}'


@pytest.mark.parametrize(
    ("text", "reward", "reason"),
    [
        (GOOD, 1.0, None),
        (f"Here you are:\n```json\n{GOOD}\n```", 1.0, None),
        (f"```\n{GOOD}\n```\nAnything else?", 1.0, None),
        ('```json\n{"name": 1}\n```\nBetter:\n```json\n' + GOOD + "\n```", 1.0, None),
        (f"Sure! {GOOD}", 0.0, "not JSON"),
        ('{"name": "Ada", "age": 36.5}', 0.0, "age: 36.5 is not of type 'integer'"),
        ('{"name": "Ada"}', 0.0, "'age' is a required property"),
        ('{"name": "Ada", "age": -1}', 0.0, "minimum"),
        ('{"name": "Ada", "age": 36, "x": 1}', 0.0, "Additional properties"),
        ('{"name": "Ada", "age": 36, "mail": "no"}', 0.0, "email"),
        ('{"name": "Ada", "name": "Bob", "age": 36}', 0.0, "'name' occurs twice"),
        ('{"name": "Ada", "age": NaN}', 0.0, "NaN is no JSON number"),
        ("[" * 100_000, 0.0, "nested too deeply"),
        ("", 0.0, "empty"),
    ],
)
def test_answers_are_checked(text: str, reward: float, reason: str | None, score: Any, said: Any) -> None:
    for schema in (SCHEMA, json.dumps(SCHEMA)):
        verdict = score(JsonSchema, {"schema": schema}, said(text))
        assert verdict.reward == reward
        assert verdict.reason is None if reason is None else reason in verdict.reason


def test_extraction_is_a_parameter(score: Any, said: Any) -> None:
    fenced, prose = said(f"```json\n{GOOD}\n```"), said(f"Sure, [see]: {GOOD} is it.")
    assert [
        score(JsonSchema, {"schema": SCHEMA}, fenced, {"extraction": how}).reward for how in ("whole", "fenced")
    ] == [0, 1]
    lenient = JsonSchema().lenient()
    assert lenient is not None
    assert score(JsonSchema, {"schema": SCHEMA}, prose).reward == 0.0
    assert score(JsonSchema, {"schema": SCHEMA}, prose, lenient.model_dump()).reward == 1.0


def test_expected_values_are_a_part_of_the_answer(score: Any, said: Any) -> None:
    row = {"schema": SCHEMA, "expected_values": {"age": 36}}
    assert score(JsonSchema, row, said(GOOD)).reward == 1.0
    wrong = score(JsonSchema, row, said('{"name": "Ada", "age": 35}'))
    assert (wrong.reward, wrong.reason) == (0.0, "age is 35, expected 36")
    assert wrong.components == {"parses": 1.0, "valid": 1.0, "values": 0.0}


@pytest.mark.parametrize(
    ("fmt", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-02-29T12:00:00Z", "2024-02-29 12:00"),
        ("time", "12:30:00", "25:00:00"),
        ("uuid", "66b63bde-b5f4-5a68-a09a-825a8bdcf48f", "66b63bde"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("uri", "https://example.org/a?b", "example"),
    ],
)
def test_formats_are_checked(fmt: str, good: str, bad: str, score: Any, said: Any) -> None:
    row = {"schema": {"type": "string", "format": fmt}}
    assert score(JsonSchema, row, said(json.dumps(good)), {"extraction": "whole"}).reward == 1.0
    assert score(JsonSchema, row, said(json.dumps(bad)), {"extraction": "whole"}).reward == 0.0


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"properties": 3},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.org/schema.json"},
        {"type": "string", "pattern": "("},
        "{",
        "[]",
        None,
        3,
    ],
)
def test_a_bad_schema_is_the_tasks_fault(schema: Any) -> None:
    with pytest.raises(ValidationError):
        JsonSchemaTask.model_validate({"schema": schema})


def test_local_references_work(score: Any, said: Any) -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}}
    assert score(JsonSchema, {"schema": schema}, said("[1, 2]")).reward == 1.0
    assert score(JsonSchema, {"schema": schema}, said('[1, "2"]')).reward == 0.0


def test_a_schema_that_never_ends_is_undecided(score: Any, said: Any) -> None:
    with pytest.raises(VerifierError):
        score(JsonSchema, {"schema": {"$ref": "#"}}, said("{}"))


async def test_a_pattern_that_never_ends_is_undecided(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "VALIDATION_TIMEOUT_S", 0.5)
    verifier = JsonSchema()
    task = JsonSchemaTask(schema={"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}})
    with pytest.raises(VerifierTimeout):
        await verifier.verify(task, said(json.dumps({"a": "a" * 60 + "b"})))
    await verifier.close()


def test_patterns_are_checked(score: Any, said: Any) -> None:
    row = {"schema": {"type": "object", "properties": {"a": {"pattern": "^[0-9]{4}$"}}}}
    assert score(JsonSchema, row, said('{"a": "2024"}')).reward == 1.0
    assert score(JsonSchema, row, said('{"a": "24"}')).reward == 0.0
