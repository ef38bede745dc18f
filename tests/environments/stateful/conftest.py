"""Plays agents into environments with a session, through the engine's episode, and scores what is left behind."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from gymflow.contracts.run import Budgets
from gymflow.contracts.task import Task
from gymflow.contracts.trajectory import Trajectory, Usage
from gymflow.contracts.verdict import Verdict
from gymflow.datasets import load_rows
from gymflow.environments import Session
from gymflow.models.base import Item, ModelRequest, ModelResponse
from gymflow.models.client import ModelClient
from gymflow.models.dialects import finish_of
from gymflow.models.scripted import Scripted
from gymflow.models.upstream import Upstream
from gymflow.registry import Registry
from gymflow.runtime.episode import Episode
from gymflow.runtime.replay import action_items, message_item, play
from gymflow.secrets import Redactor
from gymflow.verifiers import Evidence


class Stage:
    """One environment with session and verifier."""

    def __init__(self, name: str) -> None:
        registry = Registry()
        self.entry = registry.environment(name)
        self.manifest = self.entry.manifest
        self.session_class = registry.session_class(self.entry)
        self.harness_class = registry.harness_class(self.manifest.harness.name)
        verifier = registry.verifier_class(self.manifest.verifier.name, self.entry)
        self.verifier = verifier(verifier.Parameters(**self.manifest.verifier.parameters))

    def tasks(self, split: str = "test") -> list[Task]:
        return list(load_rows(self.entry, split, manifest=self.manifest, task_fields=self.verifier.task_fields))

    def session(self, task: Task) -> Session:
        return self.session_class(task, seed=0, parameters=self.manifest.session_parameters)

    async def verdict(self, task: Task, outputs: Sequence[list[Item]]) -> Verdict:
        """The verdict on an agent whose model gave these outputs, one list of items a turn."""
        record = await play(self.session(task), outputs)
        fields = self.verifier.task_fields.model_validate(task.verifier_fields)
        return await self.verifier.verify(fields, Evidence.of(record))

    async def mean_reward(self, agent: Callable[[Task], Sequence[list[Item]]], split: str = "test") -> float:
        """Mean reward over a split."""
        tasks = self.tasks(split)
        return sum([(await self.verdict(task, agent(task))).reward for task in tasks]) / len(tasks)

    async def run(self, task: Task, answer: Callable[[list[Item]], list[Item]]) -> tuple[Verdict, Trajectory]:
        """The verdict on an agent in the default harness; `answer` makes a model's output of the history."""

        def respond(request: ModelRequest) -> ModelResponse:
            output = answer(request.input)
            return ModelResponse(output, finish_reason=finish_of(output), usage=Usage())

        harness = self.harness_class(self.harness_class.Parameters(**self.manifest.harness.parameters))
        model = Upstream("policy", Scripted(answer=respond), concurrency=None, unreachable_s=5)
        session = self.session(task)
        create = task.responses_create_params
        episode = Episode(
            task=task,
            session=session,
            client=ModelClient({"policy": model}, seed=None, budgets=Budgets(), redactor=Redactor()),
            request=ModelRequest(input=list(create.input), tools=list(create.tools or [])),
            budgets=Budgets(),
            environment_timeout_s=60,
        )
        await episode.start()
        await harness.run(episode)
        snapshot = await session.snapshot()
        await session.close()
        evidence = Evidence(
            response={"output": episode.last.output},
            trajectory=episode.trajectory,
            snapshot=snapshot.state if snapshot else None,
        )
        fields = self.verifier.task_fields.model_validate(task.verifier_fields)
        return await self.verifier.verify(fields, evidence), episode.trajectory

    async def snapshot(self, task: Task, outputs: Sequence[list[Item]]) -> dict[str, Any] | None:
        """The session's final state after these outputs."""
        return (await play(self.session(task), outputs)).snapshot

    @staticmethod
    def said(*texts: str) -> list[list[Item]]:
        """Messages, one a turn."""
        return [[message_item(text)] for text in texts]

    @staticmethod
    def called(*calls: tuple[str, dict[str, Any]]) -> list[list[Item]]:
        """Tool calls, one a turn, then a message."""
        turns = [action_items({"name": name, "arguments": arguments}, i) for i, (name, arguments) in enumerate(calls)]
        return [*turns, [message_item("Done.")]]

    @staticmethod
    def drawn(rng: random.Random, tool: dict[str, Any], words: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """A random call that fits the tool's schema; texts are drawn from `words`."""

        def value(kind: dict[str, Any]) -> Any:
            if "enum" in kind:
                return rng.choice(kind["enum"])
            if kind["type"] == "integer":
                return rng.randint(1, 90)
            if kind["type"] == "array":
                return [value(kind["items"]) for _ in range(rng.randint(1, 2))]
            return rng.choice(words)

        return tool["name"], {name: value(kind) for name, kind in tool["parameters"]["properties"].items()}


@pytest.fixture
async def stage() -> AsyncIterator[Callable[[str], Stage]]:
    """`stage("workplace")` is that environment with its session and verifier, closed after the test."""
    opened: dict[str, Stage] = {}

    def start(name: str) -> Stage:
        if name not in opened:
            opened[name] = Stage(name)
        return opened[name]

    yield start
    for one in opened.values():
        await one.verifier.close()
