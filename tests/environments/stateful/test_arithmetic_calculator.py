"""The calculator, and agents that use it."""

import random
import re

import pytest
from gymflow.environments.arithmetic.session import Calculator
from gymflow.environments.arithmetic.tasks import OPERATIONS, Problem, generate, value

from gymflow.contracts.task import Task


async def calculate(**arguments):
    return await Calculator(Task(**next(generate("test", "tool"))), seed=0).call("calculate", arguments)


@pytest.mark.parametrize(
    ("a", "op", "b", "output"),
    [
        (85, "+", 89, "174"),
        (5, "-", 9, "-4"),
        (-12, "*", 12, "-144"),
        (10**29, "*", 10**29, str(10**58)),
        (7.0, "+", 1, "8"),
    ],
)
async def test_calculates(a, op, b, output):
    result = await calculate(a=a, op=op, b=b)

    assert (result.output, result.error) == (output, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": 1, "op": "/", "b": 2}, "Error: op is one of +, -, *, not '/'"),
        ({"a": 1.5, "op": "+", "b": 2}, "Error: a is a whole number, not 1.5"),
        ({"a": "1", "op": "+", "b": 2}, "Error: a is a whole number, not '1'"),
        ({"a": 1, "op": "+", "b": True}, "Error: b is a whole number, not True"),
        ({"a": 1, "op": "+", "b": float("nan")}, "Error: b is a whole number, not nan"),
        ({"a": 1, "op": "+"}, "Error: b is a whole number, not None"),
        ({"a": 10**30, "op": "*", "b": 2}, "Error: a has more than 30 digits"),
        ({"a": 1, "op": "+", "b": 2, "c": 3}, "Error: calculate takes a, op and b, not c"),
    ],
)
async def test_refuses_in_words_that_the_agent_sees(arguments, message):
    result = await calculate(**arguments)

    assert (result.output, result.error) == (message, True)


@pytest.mark.parametrize("split", ["test", "tool"])
async def test_reference_agent_scores_one(stage, split):
    room = stage("arithmetic")

    def agent(task: Task):
        answer = f"Answer: {task.expected_answer}"
        if split == "test":
            return room.said(answer)
        problem = next(p for p in _problems(task) if str(value(p)) == task.expected_answer)
        return [*room.called(("calculate", problem._asdict()))[:-1], *room.said(answer)]

    assert await room.mean_reward(agent, split) == 1.0


async def test_calculator_gives_the_expected_answer_to_every_task(stage):
    room = stage("arithmetic")
    for task in room.tasks("tool"):
        outputs = {(await calculate(**problem._asdict())).output for problem in _problems(task)}
        assert task.expected_answer in outputs


@pytest.mark.parametrize("split", ["test", "tool"])
async def test_idle_and_random_agents_score_nearly_zero(stage, split):
    room, rng = stage("arithmetic"), random.Random(0)

    assert await room.mean_reward(lambda task: room.said(""), split) == 0.0
    assert await room.mean_reward(lambda task: room.said(f"Answer: {rng.randint(0, 999)}"), split) < 0.1


async def test_repeating_the_question_scores_zero(stage):
    room = stage("arithmetic")

    assert await room.mean_reward(lambda task: room.said(task.responses_create_params.input[0]["content"])) < 0.1


def _problems(task: Task) -> list[Problem]:
    """Every problem that can be made from the two numbers of a question."""
    first, second = map(int, re.findall(r"\d+", task.responses_create_params.input[0]["content"]))
    return [Problem(a, op, b) for a, b in ((first, second), (second, first)) for op in OPERATIONS]
