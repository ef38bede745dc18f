"""The references against slow solutions that try everything, on all small hidden tests and on further random ones."""

import itertools
import json
import re
from collections import Counter

import pytest
from gymflow.environments.competition import problem
from gymflow.environments.competition.cheats import CHEATS
from gymflow.environments.competition.tasks import generate

from tests.support.competition import BRUTE, joined, wins

ROWS = {task["task_id"]: task for task in generate()}
PROBLEMS = dict(problem.ALL)


def test_every_problem_has_a_slow_solution() -> None:
    assert sorted(BRUTE) == sorted(PROBLEMS)


@pytest.mark.parametrize("name", PROBLEMS)
def test_slow_solutions_agree_on_small_inputs(name) -> None:
    one = PROBLEMS[name]
    largest, slow = BRUTE[name]
    sizes = [size for size in one.sizes if size <= largest]
    inputs = [one.example]
    inputs += [one.inputs(problem.Draw(f"competition {name} {index}"), size) for index, size in enumerate(sizes)]
    inputs += [one.inputs(problem.Draw(f"further {name} {n}"), sizes[n % len(sizes)]) for n in range(4 if sizes else 0)]
    for text in inputs:
        assert slow(text) == one.reference(text), text


def test_heaps_are_won_as_trying_all_moves_says() -> None:
    known: dict = {}
    for heaps in itertools.product(range(1, 5), repeat=3):
        text = f"3\n{joined(heaps)}"
        assert PROBLEMS["heaps-of-stones"].reference(text) == ("first" if wins(heaps, known) else "second")


@pytest.mark.parametrize("name", ROWS)
def test_no_constant_output_passes(name) -> None:
    outputs = Counter(test["output"] for test in ROWS[name]["tests"])
    assert len(ROWS[name]["tests"]) >= 8
    assert max(outputs.values()) <= 0.6 * sum(outputs.values())


@pytest.mark.parametrize("name", ROWS)
def test_questions_have_an_example_that_is_no_hidden_test(name) -> None:
    row = ROWS[name]
    shown = re.search(r"Example input:\n(.*)\n\nExample output:\n(.*)\Z", row["question"], re.DOTALL)
    assert shown[2] == PROBLEMS[name].reference(shown[1])
    assert shown[1] not in [test["input"].strip() for test in row["tests"]]


def test_references_are_whole_programs(tmp_path) -> None:
    for one in PROBLEMS.values():
        program = compile(one.source(), one.name, "exec")
        assert {"sys", "print"} <= set(program.co_names)


def test_rows_are_plain_and_small() -> None:
    text = json.dumps(list(ROWS.values()))
    assert json.loads(text) == list(ROWS.values())
    assert len(text) < 2_000_000


def test_there_are_sixty_problems_of_five_kinds_in_three_difficulties() -> None:
    assert len(ROWS) >= 60
    assert len({task["tags"][0] for task in ROWS.values()}) >= 5
    assert min(sum(level in task["tags"] for task in ROWS.values()) for level in ("easy", "medium", "hard")) >= 8


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_programs(name) -> None:
    compile(CHEATS[name], name, "exec")


def answer(program: str) -> str:
    return f"```python\n{program}\n```"


async def test_references_score_one_and_cheats_nothing(bench) -> None:
    environment = bench("competition")
    tasks = environment.tasks()
    for task in tasks[::30]:
        assert (await environment.verdict(task, answer(PROBLEMS[task.task_id].source()))).reward == 1.0, task.task_id
    for cheat, task in zip([cheat for cheat in CHEATS if cheat != "endless"], tasks, strict=False):
        assert (await environment.verdict(task, answer(CHEATS[cheat]))).reward == 0.0, cheat


@pytest.mark.slow
async def test_every_reference_scores_one(bench) -> None:
    assert await bench("competition").mean_reward(lambda task: answer(PROBLEMS[task.task_id].source())) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
async def test_no_cheat_scores_anywhere(bench, cheat) -> None:
    environment = bench("competition")
    for task in environment.tasks()[:: 33 if cheat == "endless" else 8]:
        assert (await environment.verdict(task, answer(CHEATS[cheat]))).reward == 0.0, task.task_id
