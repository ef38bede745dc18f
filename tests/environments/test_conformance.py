"""What every environment of the project keeps to."""

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from gymflow.datasets import load_rows, rendered
from gymflow.registry import EnvironmentEntry, Registry
from gymflow.validation.duplicates import normalised
from gymflow.validation.environment import validate_environment
from gymflow.validation.preflight import KINDS

REGISTRY = Registry()
ENVIRONMENTS = sorted(found.name for found in REGISTRY.found("environments") if found.root == "gymflow")

TASKS = {"repo_repair": 20, "terminal_tasks": 15}
"""At least so many tasks, where one task is a piece of work rather than a question. Everywhere else: 60."""

EMAIL = re.compile(r"[\w.+-]+@[\w.-]+\w")
SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\n)([A-Z][a-z]+)")


@pytest.fixture(params=ENVIRONMENTS)
def entry(request: pytest.FixtureRequest) -> EnvironmentEntry:
    return REGISTRY.environment(request.param)


def tasks(entry: EnvironmentEntry, split: str = "test") -> list:
    return _tasks(entry.name, split)


@cache
def _tasks(name: str, split: str) -> list:
    entry = REGISTRY.environment(name)
    return list(load_rows(entry, split, manifest=entry.manifest))


def text_of(entry: EnvironmentEntry, task) -> str:
    return "\n".join(item["content"] for item in rendered(task, entry.manifest) if item["role"] == "user")


def skeletons(texts: list[str]) -> list[str]:
    """The texts with numbers, addresses and names replaced. A word at the start of a sentence is a name only if some text has it
    capitalised within a sentence as well."""
    within = Counter(word for text in texts for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text))

    def lower(start: re.Match) -> str:
        return start[0] if within[start[1]] else start[0].lower()

    return [normalised(EMAIL.sub("0", SENTENCE_START.sub(lower, text))) for text in texts]


async def test_is_valid_with_fixtures_of_all_kinds(entry):
    report = await validate_environment(entry, REGISTRY)

    assert report.ok, [str(fault) for fault in report.shown_faults]
    assert {fixture.kind for fixture in report.fixtures} == set(KINDS)


def test_has_a_readme_that_names_its_splits_and_benchmarks(entry):
    readme = (entry.folder / "README.md").read_text(encoding="utf-8")

    assert readme.startswith(f"# {entry.name}\n")
    for name in ({*entry.manifest.datasets} - {"test"}) | {*entry.manifest.benchmarks, entry.manifest.verifier.name}:
        assert f"`{name}`" in readme, f"the README does not mention `{name}`"


def test_has_tasks_of_many_templates_and_all_difficulties(entry):
    rows = tasks(entry)
    templates = {tag for task in rows for tag in task.tags if tag.startswith("template-")}
    difficulties = [set(task.tags) & {"easy", "medium", "hard"} for task in rows]

    assert len(rows) >= TASKS.get(entry.name, 60)
    assert len(templates) >= 8
    assert all(len(found) == 1 for found in difficulties)
    assert set.union(*difficulties) == {"easy", "medium", "hard"}


def test_no_two_tasks_are_the_same_but_for_numbers_and_names(entry):
    found = Counter(skeletons([text_of(entry, task) for task in tasks(entry)]))

    assert [text for text, count in found.items() if count > 1] == []


def test_splits_share_no_task_ids(entry):
    ids = Counter(task.task_id for split in entry.manifest.datasets for task in tasks(entry, split))

    assert max(ids.values()) == 1


def test_benchmarks_use_a_split_that_exists(entry):
    assert {benchmark.split for benchmark in entry.manifest.benchmarks.values()} <= set(entry.manifest.datasets)


async def test_tool_schemas_are_valid_and_described(entry):
    session_class = REGISTRY.session_class(entry)
    for split in entry.manifest.datasets:
        task = tasks(entry, split)[0]
        session = session_class(task, seed=0)
        await session.start()
        tools = [*(task.responses_create_params.tools or ()), *await session.tools()]
        await session.close()
        assert ("tools" in entry.manifest.offers) or not tools
        for tool in tools:
            Draft202012Validator.check_schema(tool["parameters"])
            assert tool["type"] == "function"
            assert tool["description"]
            assert all(described.get("description") for described in tool["parameters"]["properties"].values())


def test_generated_rows_do_not_depend_on_the_process():
    """Another hash seed, other rows before: the same digest."""
    digests = "\n".join(
        (
            "import sys",
            "from gymflow.datasets import dataset_digest",
            "from gymflow.registry import Registry",
            "registry = Registry()",
            "for name in sys.argv[1:]:",
            "    entry = registry.environment(name)",
            "    print(name, dataset_digest(entry, 'test'))",
        )
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", digests, *names],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed, names in (("1", ENVIRONMENTS), ("2", reversed(ENVIRONMENTS)))
    ]

    assert sorted(outputs[0]) == sorted(outputs[1])
