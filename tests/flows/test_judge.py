"""Runs whose verifier asks a judge model: what is stored of it, what is asked again, and what never becomes a zero."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.reverify import reverify
from gymflow.collecting import collect
from gymflow.contracts.model import Sampling
from gymflow.contracts.run import RunConfig
from gymflow.errors import InputError
from gymflow.store import Store
from tests.support.environments import write_environment

YES = r"<answer \w+>\s*yes"
FIXTURES = [
    {"kind": "full", "task_id": "a", "text": "yes", "reward": 1.0},
    {"kind": "none", "task_id": "a", "text": "no", "reward": 0.0},
    {"kind": "near_miss", "task_id": "a", "text": "nearly", "reward": 0.0},
    {"kind": "format_variant", "task_id": "a", "text": "yes!", "reward": 1.0},
    {"kind": "malformed", "task_id": "a", "text": "(", "reward": 0.0},
    {"kind": "empty", "task_id": "a", "text": "", "reward": 0.0},
]
ROWS = [{"task_id": name, "question": f"Is {name} a letter?", "expected_answer": "yes"} for name in "abcd"]


@pytest.fixture
def health() -> bool:
    """No test here is about the examination of a run."""
    return False


def grade(name: str) -> str:
    return json.dumps({"reasoning": "Because.", "grade": name})


JUDGE = [{"matches": YES, "text": grade("correct")}, {"text": grade("incorrect")}]


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    """`judged(judge_rules, policy_rules, **fields)`: the configuration of a run over an environment with the judge verifier."""

    def config(judge: Any = JUDGE, policy: Any = None, **fields: Any) -> RunConfig:
        folder = write_environment(
            tmp_path / "letters",
            rows=ROWS,
            fixtures=FIXTURES,
            code="",
            verifier={"name": "judge"},
            prompt={"user": "{question}"},
        )
        models = {
            "policy": {"provider": "scripted", "parameters": {"rules": policy or [{"text": "yes"}]}, "max_retries": 0},
            "judge": {"provider": "scripted", "model": "grader", "parameters": {"rules": judge}, "max_retries": 0},
        }
        return RunConfig.model_validate(
            {"environments": [{"name": str(folder)}], "models": models, "limits": {"concurrency": 1}} | fields
        )

    return config


async def test_a_judged_run_keeps_what_the_judge_was_asked(run, rows, judged):
    policy = [{"contains": "Is a ", "text": "no"}, {"text": "yes"}]
    card = await run(judged(policy=policy))
    assert (card.lines[0].scored, card.lines[0].score) == (4, 0.75)
    assert rows("select role, count(*) from model_calls group by 1") == [("policy", 4)]
    calls = rows("select rollout_id, call, reused, model, status, output::varchar, new_input::varchar from judge_calls")
    assert len(calls) == 4 and len({call[0] for call in calls}) == 4
    assert {call[1:5] for call in calls} == {(0, False, "grader", "ok")}
    assert all("Because" in call[5] and "a letter" in call[6] for call in calls)
    assert rows("select distinct judge ->> 'model' from verdicts") == [("grader",)]


async def test_a_benchmark_lets_a_judge_grade_what_rules_grade_otherwise(run, rows, judged, tmp_path):
    config = judged(policy=[{"contains": "Is a ", "text": "yes!"}, {"text": "yes"}])
    rules = {"name": "exact"}
    write_environment(
        tmp_path / "letters",
        rows=ROWS,
        fixtures=FIXTURES,
        code="",
        verifier=rules,
        prompt={"user": "{question}"},
        benchmarks={"letters-judged": {"verifier": {"name": "judge"}}},
    )
    selection = config.environments[0].model_copy(update={"benchmark": "letters-judged"})
    card = await run(config.model_copy(update={"environments": [selection]}))
    assert card.lines[0].score == 1.0
    assert rows("select distinct verifier, judge ->> 'model' from verdicts") == [("judge", "grader")]


async def test_the_same_question_is_asked_once(run, rows, judged):
    await run(judged(repeats=5))
    assert rows("select reused, count(*) from judge_calls group by 1 order by 1") == [(False, 4), (True, 16)]
    assert rows("select count(distinct question_key) from judge_calls") == [(4,)]


async def test_rescoring_with_the_same_judge_and_prompt_makes_no_call(run, rows, store, judged):
    await run(judged())
    await reverify("r", {"grades": {"correct": 0.5, "incorrect": 0.0}}, str(store))
    assert rows(
        "select s.position, reused, count(*) from judge_calls join verdict_sets s using (verdict_set) group by all order by 1"
    ) == [
        (0, False, 4),
        (1, True, 4),
    ]
    assert rows("select distinct reward from outcomes where is_current") == [(0.5,)]


async def test_another_prompt_or_another_judge_is_asked(run, rows, store, judged):  # ca-model-in-key
    await run(judged(), "one")
    await reverify("one", {"guide": "Be strict."}, str(store))
    other = judged()
    changed = other.models["judge"].model_copy(update={"model": "other", "revision": "2"})
    await run(other.model_copy(update={"models": other.models | {"judge": changed}}), "two")
    assert rows("select count(*) from judge_calls where not reused") == [(12,)]


async def test_a_filtered_reply_is_never_served_again(run, rows, store, judged):  # mc-refusal-cached
    filtered = {"contains": "Is b ", "text": grade("correct"), "finish_reason": "content_filter"}
    card = await run(judged(judge=[filtered, *JUDGE]))
    assert [one.kind for one in card.lines[0].failures] == ["judge_refused"] and card.lines[0].scored == 3
    asked = rows("select started_at from judge_calls where finish_reason = 'content_filter'")
    await reverify("r", {}, str(store))
    again = rows("select reused, started_at from judge_calls where finish_reason = 'content_filter'")
    assert len(again) == 1 and not again[0][0] and again[0][1] > asked[0][0]


async def test_what_cannot_be_judged_is_counted_by_its_kind(run, rows, judged):  # jd-nondeterminism
    rules = [
        {"contains": "Is b ", "error": {"status": 500, "message": "overloaded", "retryable": False}},
        {"contains": "Is c ", "text": ""},
        {"contains": "Is d ", "text": "banana"},
        *JUDGE,
    ]
    card = await run(judged(judge=rules))
    (line,) = card.lines
    assert (line.rollouts, line.scored, line.score) == (4, 1, 1.0)
    assert [(one.kind, one.rollouts) for one in line.failures] == [("judge_unparseable", 2), ("judge_error", 1)]
    messages = rows("select failure_message from verdicts where reward is null order by rollout_id")
    assert ["overloaded" in messages[0][0], "said nothing" in messages[1][0], "banana" in messages[2][0]] == [True] * 3


async def test_a_verifier_that_needs_a_judge_is_refused_without_one(run, judged, store):
    config = judged()
    policy_alone = config.model_copy(update={"models": {"policy": config.models["policy"]}})
    with pytest.raises(InputError, match="models: judge"):
        await run(policy_alone)
    assert Store(store).runs() == []


async def test_a_judge_that_misses_a_fixture_stops_the_run(run, judged, store):
    with pytest.raises(InputError, match="near_miss"):
        await run(judged(judge=[{"text": grade("correct")}]))
    assert Store(store).runs() == []


async def test_another_judge_reverifies_a_run(run, rows, store, judged):
    await run(judged())
    strict = {"model": "strict", "parameters": {"rules": [{"text": grade("incorrect")}]}}
    report = await reverify("r", {}, str(store), judge=strict)
    assert (report.lines[0].old_score, report.lines[0].new_score, report.lines[0].lost) == (1.0, 0.0, 4)
    before, now = report.changes[0].judge
    assert (before["model"], now["model"]) == ("grader", "strict")
    assert all(flip.new_reason == "incorrect: Because." for flip in report.flips)


async def test_failed_only_asks_the_judge_again_for_what_it_did_not_judge(run, rows, store, judged):
    rules = [{"contains": "Is b ", "error": {"status": 500, "message": "overloaded", "retryable": False}}, *JUDGE]
    config = judged(judge=rules)
    pinned = config.models["judge"].model_copy(update={"revision": "1"})
    card = await run(config.model_copy(update={"models": config.models | {"judge": pinned}}))
    assert [one.kind for one in card.lines[0].failures] == ["judge_error"]
    report = await reverify("r", {}, str(store), judge={"parameters": {"rules": JUDGE}}, failed_only=True)
    assert (report.scored, report.reused, report.lines[0].recovered, report.lines[0].without) == (1, 3, 1, 0)
    sets = rows("select verdict_set, refers_to from verdict_sets order by position")
    assert sets[1][1] == sets[0][0]
    assert rows("select outcome, count(*) from outcomes where is_current group by 1") == [("scored", 4)]
    assert rows(f"select count(*) from judge_calls where verdict_set = '{sets[1][0]}'") == [(1,)]


async def test_failed_only_asks_the_judge_of_the_set_that_it_completes(run, rows, store, judged):
    await run(judged())
    overloaded = {"contains": "Is b ", "error": {"status": 500, "message": "overloaded", "retryable": False}}
    strict = {"model": "strict", "parameters": {"rules": [overloaded, {"text": grade("incorrect")}]}}
    await reverify("r", {}, str(store), judge=strict)
    with pytest.raises(InputError, match="the judge model differ"):
        await reverify("r", {}, str(store), judge={"model": "grader"}, failed_only=True)
    rules = {"parameters": {"rules": [{"text": grade("incorrect")}]}}
    report = await reverify("r", {}, str(store), judge=rules, failed_only=True)
    assert (report.scored, report.lines[0].new_score) == (1, 0.0)
    assert rows("select distinct judge ->> 'model' from verdicts where judged_in = verdict_set and reward = 0") == [
        ("strict",)
    ]


async def test_a_trainer_collects_judged_samples(judged, store):
    config = judged()
    folder, models = config.environments[0].name, config.models
    rewards = [
        sample.verdict.verdict.reward
        async for sample in collect(folder, model=models["policy"], judge=models["judge"], store=store)
    ]
    assert rewards == [1.0] * 4


async def test_another_judge_on_resume_starts_a_new_verdict_set(run, rows, judged):
    await run(judged())
    config = judged()
    warmer = config.models["judge"].model_copy(update={"sampling": Sampling(temperature=0.5)})
    card = await run(config.model_copy(update={"models": config.models | {"judge": warmer}}))
    assert card.lines[0].scored == 4
    assert rows("select count(distinct verdict_set) from verdicts") == [(2,)]
    assert rows("select count(*) from model_calls") == [(4,)]
