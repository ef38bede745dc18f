"""The arithmetic task family: its split, its wordings, its reference solutions."""

import importlib.util
import random
import re
import sys
from collections import Counter
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.paths import data_dir, shipped


def load(path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.stem}_under_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tasks = load(shipped("environments") / "arithmetic" / "tasks.py")
problems = st.builds(
    lambda a, op, b: tasks.Problem(max(a, b), op, min(a, b)),
    st.integers(0, 9999),
    st.sampled_from("+-*"),
    st.integers(0, 9999),
)


def asked(row: dict) -> str:
    return row["responses_create_params"]["input"][0]["content"]


def skeleton(row: dict) -> str:
    return re.sub(r"\d+", "N", asked(row))


@pytest.mark.parametrize("variant", tasks.VARIANTS)
def test_no_two_of_the_64_evaluation_tasks_differ_in_numbers_alone(variant):
    rows = list(tasks.generate("test", variant))
    assert len(rows) == 64
    assert len({skeleton(row) for row in rows}) == 64
    assert len({tag for row in rows for tag in row["tags"] if tag.startswith("template-")}) >= 8
    assert {row["tags"][1] for row in rows} == set(tasks.DIFFICULTIES)


def test_every_wording_is_another_question():
    skeletons = [tasks.question(tasks.Problem(1, op, 1), w) for op in tasks.OPERATIONS for w in range(24)]
    assert len(set(skeletons)) == 72


@settings(deadline=None)
@given(problems)
def test_both_orders_of_a_sum_or_product_fall_into_one_split(problem):
    if problem.op != "-":
        swapped = tasks.Problem(problem.b, problem.op, problem.a)
        assert tasks.is_held_out(problem) == tasks.is_held_out(swapped)


def test_about_a_fifth_of_the_problems_is_held_out():
    held_out = [tasks.is_held_out(tasks.Problem(a, "-", b)) for a in range(100) for b in range(a + 1)]
    assert 0.15 < sum(held_out) / len(held_out) < 0.25


def test_the_splits_share_no_problem_and_training_does_not_use_the_new_wordings():
    for split in ("train", "test"):
        for row in tasks.generate(split, count=600):
            a, b = map(int, re.findall(r"\d+", asked(row)))
            op = {name: sign for sign, name in tasks.OPERATIONS.items()}[row["tags"][0]]
            problem = tasks.Problem(max(a, b), op, min(a, b))
            assert tasks.is_held_out(problem) == (split == "test")
            assert "new-wording" not in row["tags"] or split == "test"


def test_training_conversations_hold_no_evaluation_problem():
    conversations = load(data_dir() / "embedded" / "conversations.py")
    rng = random.Random(0)
    new = [re.sub(r"\d+", "N", tasks.question(tasks.Problem(1, op, 1), w)) for op in "+-*" for w in tasks.NEW_WORDINGS]
    for _ in range(500):
        messages, _ = conversations.draw(rng)
        texts = [m["content"] for m in messages if m["role"] == "assistant"]
        texts += [str(c["function"]["arguments"]) for m in messages for c in m.get("tool_calls", ())]
        stated = re.findall(r"(\d+)([-+*])(\d+):|'a': (\d+), 'op': '(.)', 'b': (\d+)", " ".join(texts))
        for *worked, a, op, b in stated:
            a, op, b = worked if worked[0] else (a, op, b)
            assert not tasks.is_held_out(tasks.Problem(int(a), op, int(b)))
        skeletons = re.sub(r"\d+", "N", " ".join(m["content"] for m in messages if m["role"] == "user"))
        assert not any(wording in skeletons for wording in new)


@pytest.mark.parametrize("split", ["train", "test"])
def test_rows_do_not_depend_on_how_many_are_asked_for(split):
    assert list(tasks.generate(split, count=500))[:100] == list(tasks.generate(split, count=100))


def test_no_question_is_asked_twice_and_ids_are_unique():
    rows = list(tasks.generate("test", count=2000))
    assert len({asked(row) for row in rows}) == len({row["task_id"] for row in rows}) == 2000


def test_seeds_give_other_tasks_and_variants_the_same_questions():
    plain, tool = list(tasks.generate("test", "plain")), list(tasks.generate("test", "tool"))
    assert [asked(row) for row in plain] == [asked(row) for row in tool]
    assert all(row["responses_create_params"]["tools"] == [tasks.CALCULATOR] for row in tool)
    assert not any("tools" in row["responses_create_params"] for row in plain)
    assert [asked(row) for row in tasks.generate("test", seed=1)] != [asked(row) for row in plain]


def test_the_rows_are_the_same_in_every_python_version():
    rows = list(tasks.generate("test", count=4))
    assert [(asked(row), row["expected_answer"]) for row in rows] == [
        ("What is 85 + 89?", "174"),
        ("What is 404 - 229?", "175"),
        ("What is 6 * 86?", "516"),
        ("Compute 134 plus 429.", "563"),
    ]


@settings(deadline=None)
@given(problems)
def test_the_working_is_right_in_every_step(problem):
    a, op, b = problem
    stated, *steps = tasks.worked(problem).split()
    assert stated == f"{a}{op}{b}:"
    if op == "*":
        assert steps == []
        return
    digits = [re.fullmatch(r"(\d)[-+](\d)[-+](\d)=(\d+)", step).groups() for step in steps]
    shown = "".join(step[3][-1] for step in digits[::-1])
    carried_out = "1" if op == "+" and int(digits[-1][3]) > 9 else ""
    assert int(carried_out + shown) == tasks.value(problem)
    for (x, y, carry, total), (_, _, next_carry, _) in pairwise(digits):
        signed = int(x) + int(y) + int(carry) if op == "+" else int(x) - int(y) - int(carry)
        assert signed % 10 == int(total[-1])
        assert int(next_carry) == (signed > 9 or signed < 0)


def test_difficulties_are_mixed():
    counted = Counter(tuple(row["tags"][:2]) for row in tasks.generate("test"))
    assert set(counted) == {
        ("addition", "easy"),
        ("addition", "medium"),
        ("subtraction", "easy"),
        ("subtraction", "medium"),
        ("multiplication", "medium"),
        ("multiplication", "hard"),
    }
    assert min(counted.values()) >= 5


@pytest.mark.parametrize(("split", "variant"), [("validation", "plain"), ("test", "wild")])
def test_an_unknown_split_or_variant_is_named(split, variant):
    with pytest.raises(ValueError, match=r"unknown (split|variant)"):
        next(tasks.generate(split, variant))
