"""The texts are data: expected values conform to their schemas and stand in the text, or are known to be worked out from it."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from gymflow.verifiers._schemas import faults
from rapidfuzz import fuzz

from gymflow.datasets import rendered

WORKED_OUT = {
    "address-medium-1": {"+49405550199", "DE"},
    "address-medium-2": {"+33155500107", "FR"},
    "event-hard-2": {0},
    "invoice-hard-1": {0},
    "invoice-hard-2": {2, 3, 50},
    "invoice-medium-2": {10},
    "log-medium-1": {42},
    "log-medium-2": {1500},
    "match-easy-2": {1, 4},
    "match-hard-2": {1, 2, 3, 4, 7, 12},
    "match-medium-2": {9000},
    "product-hard-1": {0},
    "product-hard-2": {2, 9, 32},
    "product-medium-1": {1200, 24},
    "recipe-easy-1": {4},
    "recipe-easy-2": {75},
    "recipe-hard-1": {1, 2},
    "recipe-hard-2": {15, 50},
    "recipe-medium-2": {1, 100},
    "timetable-hard-1": {0},
    "timetable-hard-2": {0, 25},
    "weather-hard-2": {5, 10, 15},
    "weather-medium-2": {19},
}
"""Values that the text does not spell, by task: written out as words, converted, or computed."""


def leaves(value: Any, schema: dict) -> Iterator[tuple[Any, dict]]:
    """Every scalar with the schema that describes it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, schema["properties"][key])
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, schema["items"])
    else:
        yield value, schema


def stands_in(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return value in text
    numbers = [float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)]
    return float(value) in numbers or -float(value) in numbers


def is_free(value: Any, schema: dict) -> bool:
    """Whether a value is judged by the schema's meaning and not by its spelling in the text."""
    by_meaning = "enum" in schema or schema.get("format") == "date" or schema.get("description", "").startswith("HH:MM")
    return by_meaning or value is None or isinstance(value, bool)


def random_value(schema: dict, words: list[str], rng: random.Random) -> Any:
    """A value that conforms, made of the text's words and numbers."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = rng.choice(kinds)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if kind == "object":
        return {key: random_value(inner, words, rng) for key, inner in schema["properties"].items()}
    if kind == "array":
        return [random_value(schema["items"], words, rng) for _ in range(rng.randint(0, 3))]
    if kind in ("integer", "number"):
        return int(rng.choice([word for word in words if word.isdigit()] or ["1"]))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "null":
        return None
    return "2025-01-01" if schema.get("format") == "date" else rng.choice(words)


@pytest.fixture
def environment(bench):
    return bench("structured_output")


@pytest.fixture
def every_task(environment):
    return [task for split in ("test", "train") for task in environment.tasks(split)]


def field(task, name: str) -> Any:
    return task.verifier_fields[name]


def test_there_are_sixty_texts_of_eight_kinds_in_three_difficulties(environment) -> None:
    tasks = environment.tasks()
    assert len(tasks) >= 60
    assert len({task.tags[0] for task in tasks}) >= 8
    assert min(sum(level in task.tags for task in tasks) for level in ("easy", "medium", "hard")) >= 20


def test_no_two_texts_have_the_same_structure(every_task) -> None:
    bare = [re.sub(r"\d+", "#", re.sub(r"\b[A-Z]\w*", "N", field(task, "text"))) for task in every_task]
    assert len(set(bare)) == len(bare)
    alike = [(a, b) for place, a in enumerate(bare) for b in bare[:place] if fuzz.ratio(a, b) > 80]
    assert not alike


def test_expected_values_conform_and_are_complete(every_task) -> None:
    for task in every_task:
        schema, expected = field(task, "schema"), field(task, "expected_values")
        assert faults({"schema": schema, "instance": expected}) == [], task.task_id
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"]) == list(expected)


def test_expected_values_stand_in_the_text_or_are_worked_out(every_task) -> None:
    worked_out: dict[str, set[Any]] = {}
    for task in every_task:
        for value, schema in leaves(field(task, "expected_values"), field(task, "schema")):
            if not is_free(value, schema) and not stands_in(field(task, "text"), value):
                worked_out.setdefault(task.task_id, set()).add(value)
    assert worked_out == WORKED_OUT


def test_invoices_add_up(every_task) -> None:
    for task in every_task:
        expected = field(task, "expected_values")
        if "invoice" in task.tags and "lines" in expected:
            sums = [
                line["quantity"] * line["unit_price"] * (1 - line.get("discount_percent", 0) / 100)
                for line in expected["lines"]
            ]
            assert sum(sums) == pytest.approx(expected.get("net_total", expected.get("total")))
            if "gross_total" in expected:
                tax = 1 + expected["vat_percent"] / 100
                assert expected["net_total"] * tax == pytest.approx(expected["gross_total"])


def test_the_prompt_shows_text_and_schema_and_not_the_values(environment) -> None:
    for task in environment.tasks():
        _, user = rendered(task, environment.manifest)
        text, _, schema = user["content"].partition("\n\nJSON schema:\n")
        assert text == field(task, "text")
        assert json.loads(schema) == field(task, "schema")


async def test_reference_answers_score_one(environment) -> None:
    for split in ("test", "train"):
        assert await environment.mean_reward(lambda task: json.dumps(field(task, "expected_values")), split) == 1.0


async def test_random_conforming_values_earn_less_than_a_tenth(environment) -> None:
    rng = random.Random(11)

    def agent(task) -> str:
        words = re.findall(r"\w+", field(task, "text"))
        return json.dumps(random_value(field(task, "schema"), words, rng))

    assert await environment.mean_reward(agent) < 0.1


async def test_silence_and_an_empty_object_earn_nothing(environment) -> None:
    assert await environment.mean_reward(lambda task: "") == 0.0
    assert await environment.mean_reward(lambda task: "{}") == 0.0


async def test_each_value_counts(environment) -> None:
    """One wrong scalar anywhere, and the answer is wrong."""
    for task in environment.tasks():
        expected = json.dumps(field(task, "expected_values"))
        places = list(leaves(field(task, "expected_values"), field(task, "schema")))
        strings = [value for value, schema in places if isinstance(value, str) and "enum" not in schema]
        broken = expected.replace(json.dumps(strings[-1]), json.dumps(strings[-1] + "x"), 1)
        assert (await environment.verdict(task, broken)).reward == 0.0, task.task_id
