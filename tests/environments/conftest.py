"""Plays scripted agents in an environment without a session: a text for each task, scored as a run would score it."""

from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any

import pytest

from gymflow.contracts.task import Task
from gymflow.datasets import load_rows
from gymflow.registry import Registry
from gymflow.verifiers import Evidence, Verdict

REGISTRY = Registry()


@cache
def _tasks(name: str, split: str) -> list[Task]:
    """Read once for all tests: checking every row's fields is the slow part."""
    entry = REGISTRY.environment(name)
    fields = REGISTRY.verifier_class(entry.manifest.verifier.name, entry).task_fields
    return list(load_rows(entry, split, manifest=entry.manifest, task_fields=fields))


class Bench:
    """One environment with its verifier."""

    def __init__(self, name: str) -> None:
        self.entry = REGISTRY.environment(name)
        self.manifest = self.entry.manifest
        verifier = REGISTRY.verifier_class(self.manifest.verifier.name, self.entry)
        self.verifier = verifier(verifier.Parameters(**self.manifest.verifier.parameters))

    def tasks(self, split: str = "test") -> list[Task]:
        """The tasks of a split, each with a prompt that renders and fields that fit the verifier."""
        return _tasks(self.entry.name, split)

    async def verdict(self, task: Task, text: str, **fields: Any) -> Verdict:
        """The verdict on a final text; `fields` replace verifier fields of the task."""
        content = [{"type": "output_text", "text": text, "annotations": []}]
        evidence = Evidence(response={"output": [{"type": "message", "role": "assistant", "content": content}]})
        return await self.verifier.verify(
            self.verifier.task_fields.model_validate(task.verifier_fields | fields), evidence
        )

    async def mean_reward(self, agent: Callable[[Task], str], split: str = "test") -> float:
        """Mean reward of an agent over a split."""
        tasks = self.tasks(split)
        return sum([(await self.verdict(task, agent(task))).reward for task in tasks]) / len(tasks)


@pytest.fixture
async def bench() -> AsyncIterator[Callable[[str], Bench]]:
    """`bench("mcqa")` is that environment with its verifier, closed after the test."""
    opened: list[Bench] = []

    def start(name: str) -> Bench:
        opened.append(Bench(name))
        return opened[-1]

    yield start
    for one in opened:
        await one.verifier.close()
