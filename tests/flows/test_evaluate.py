"""A run from configuration to scorecard: what is stored, what counts, and what never becomes a zero."""

import asyncio

import pytest

from gymflow.errors import InputError
from gymflow.store import Store
from tests.support.environments import VERIFIER, write_environment
from tests.support.runs import scripted


async def test_every_planned_rollout_is_stored_once_and_scored(run, rows):
    card = await run(scripted(repeats=3))
    (line,) = card.lines
    assert (line.tasks, line.rollouts, line.scored) == (4, 12, 12)
    assert rows("select count(*), count(distinct rollout_id), count(distinct rollout_key) from rollouts") == [
        (12, 12, 12)
    ]
    assert line.score == pytest.approx(rows("select avg(reward) from outcomes")[0][0])


async def test_infrastructure_that_fails_is_never_a_zero(run, rows):
    rules = [
        {"contains": "?", "error": {"status": 500, "message": "the GPU fell off", "retryable": False}, "times": 3},
        {"text": "The answer is (A)."},
    ]
    config = scripted(
        rules=rules, environments=[{"name": "mcqa", "limit": 6}], limits={"max_attempts": 1, "concurrency": 1}
    )
    card = await run(config)
    (line,) = card.lines
    assert line.failed >= 1 and line.scored + line.failed == 6
    assert [(one.kind, one.rollouts, one.words) for one in line.failures] == [
        ("model_error", line.failed, "the GPU fell off")
    ]
    assert line.unscored_tasks == line.failed
    assert rows("select distinct failure_message from rollouts where status = 'failed'") == [("the GPU fell off",)]
    assert rows("select count(*) from verdicts")[0][0] == line.scored


async def test_a_failed_rollout_is_attempted_again_and_every_attempt_is_kept(run, rows):
    rules = [{"error": {"status": 500, "message": "once"}, "times": 1}, {"text": "The answer is (A)."}]
    card = await run(scripted(rules=rules, environments=[{"name": "mcqa", "limit": 1}]))
    assert card.lines[0].scored == 1
    assert rows("select failure, message from attempts") == [("model_error", "once")]


async def test_an_exhausted_budget_is_scored_and_says_so(run, rows):
    config = scripted(
        environments=[{"name": "word_guess", "limit": 2}], rules=[{"text": "apple"}], budgets={"max_turns": 2}
    )
    card = await run(config)
    assert card.lines[0].scored == 2
    assert set(rows("select stop_reason, turns from rollouts")) == {("max_turns", 2)}


async def test_wall_time_ends_an_episode_and_keeps_its_evidence(run, rows):
    rules = [{"text": "The answer is (A).", "delay_s": 30}]
    card = await run(scripted(rules=rules, budgets={"wall_time_s": 0.2}))
    assert card.lines[0].scored == 4
    assert rows("select distinct stop_reason from rollouts") == [("wall_time",)]


async def test_a_selection_of_nothing_is_said_and_nothing_is_written(run, store):  # ds-limit-zero
    with pytest.raises(InputError, match="nothing is selected"):
        await run(scripted(environments=[{"name": "mcqa", "limit": 0}]))
    assert Store(store).runs() == []


async def test_pass_at_k_beyond_the_repeats_is_refused_before_anything_is_sampled(run, store):  # cf-impossible-k
    with pytest.raises(InputError, match="pass@8"):
        await run(scripted(repeats=4, metrics=["pass@8"]))
    assert Store(store).runs() == []


async def test_several_environments_and_models_are_one_run(run, rows):
    policy = {"provider": "scripted", "parameters": {"rules": [{"text": "The answer is (A). Answer: 1"}]}}
    config = scripted(
        environments=[{"name": "mcqa", "limit": 2}, {"name": "math_word", "limit": 2}],
        models={"one": policy | {"model": "one"}, "two": policy | {"model": "two"}},
    )
    card = await run(config)
    assert [(line.environment, line.agent) for line in card.lines] == [
        ("math_word", "single_turn@one"),
        ("math_word", "single_turn@two"),
        ("mcqa", "single_turn@one"),
        ("mcqa", "single_turn@two"),
    ]
    assert rows("select model, count(*) from rollouts group by 1 order by 1") == [("one", 4), ("two", 4)]


async def test_seeds_of_repeats_differ_and_equal_settings_repeat_them(run, rows):
    await run(scripted(repeats=4), "first")
    await run(scripted(repeats=4), "second")
    seeds = rows("select run_id, list(seed order by task_id, repeat) from rollouts group by 1 order by 1")
    assert seeds[0][1] == seeds[1][1]
    assert len(set(seeds[0][1])) == 16


async def test_a_run_without_seed_sends_none(run, rows):
    await run(scripted(seed=None))
    assert rows("select distinct seed from rollouts") == [(None,)]


async def test_two_runs_in_one_process_do_not_disturb_each_other(run, rows):
    await asyncio.gather(run(scripted(repeats=2), "a"), run(scripted(repeats=3), "b"))
    assert rows("select run_id, count(*) from rollouts group by 1 order by 1") == [("a", 8), ("b", 12)]


async def test_a_verifier_that_raises_leaves_the_rollout_unverified(run, rows, tmp_path, monkeypatch):
    root = tmp_path / "root"
    folder = root / "environments" / "fragile"
    folder.mkdir(parents=True)
    (folder / "verifier.py").write_text(
        "from pydantic import BaseModel\n"
        "from gymflow.verifiers import Evidence, Verdict, Verifier\n"
        "class Fields(BaseModel):\n    answer: str\n"
        "class Fragile(Verifier[Fields]):\n"
        "    async def verify(self, task, evidence):\n"
        "        if task.answer == 'boom':\n            raise RuntimeError('no idea')\n"
        "        if task.answer == 'nan':\n            return Verdict(reward=float('nan'))\n"
        "        if task.answer == 'far':\n            return Verdict(reward=5.0)\n"
        "        return Verdict(reward=float(evidence.final_text == task.answer))\n"
    )
    (folder / "README.md").write_text("# fragile\n")
    (folder / "environment.yaml").write_text(
        "name: fragile\nversion: 1.0.0\ndescription: Breaks.\ndomain: test\nlicence: Apache-2.0\n"
        "datasets: {test: {file: rows.jsonl}}\nverifier: {name: ./verifier.py}\nprompt: {user: '{question}'}\n"
    )
    answers = ["yes", "boom", "nan", "far"]
    (folder / "rows.jsonl").write_text(
        "".join(f'{{"task_id": "{a}", "question": "Say {a}.", "answer": "{a}"}}\n' for a in answers)
    )
    kinds = ["full", "none", "near_miss", "format_variant", "malformed", "empty"]
    (folder / "fixtures.jsonl").write_text(
        "".join(
            f'{{"kind": "{k}", "task_id": "yes", "text": "{"yes" if k == "full" else k}", "reward": {int(k == "full")}}}\n'
            for k in kinds
        )
    )
    monkeypatch.setenv("GYMFLOW_PATH", str(root))
    card = await run(scripted(environments=[{"name": "fragile"}], rules=[{"text": "yes"}]))
    (line,) = card.lines
    assert (line.scored, line.unverified, line.score) == (
        1,
        3,
        1.0,
    )  # io-nan-reward: no NaN, no zero, nothing out of range
    assert [(one.kind, one.rollouts) for one in line.failures] == [("verifier_error", 3)]
    assert rows("select reward from verdicts where reward is not null") == [(1.0,)]


async def test_a_run_ends_after_the_failures_that_it_was_allowed(run, rows):
    policy = {"error": {"status": 400, "message": "no", "retryable": False}}
    config = scripted(
        rules=[policy], environments=[{"name": "mcqa", "limit": 8}], limits={"max_failures": 3, "concurrency": 1}
    )
    card = await run(config)
    assert (card.lines[0].failed, card.lines[0].missing) == (3, 5)


@pytest.mark.parametrize(
    ("ending", "kind", "words"),
    [
        ("raise asyncio.CancelledError('mine')", "environment_error", "CancelledError: mine"),
        ("raise SystemExit(3)", "environment_error", "SystemExit: 3"),
        ("return 'seven'", "environment_error", "returned str, not a ToolResult"),
        ("raise KeyError('seven')", "environment_error", "KeyError"),
    ],
)
async def test_what_a_session_does_fails_its_own_rollout(run, rows, tmp_path, monkeypatch, ending, kind, words):
    session = (
        "import asyncio\n"
        "from gymflow.environments import Session, function_tool\n"
        "class Rude(Session):\n"
        "    async def tools(self):\n        return [function_tool('look', 'Look.', {})]\n"
        f"    async def call(self, name, arguments):\n        {ending}\n"
    )
    write_environment(
        tmp_path / "environments" / "rude",
        files={"session.py": session},
        session="session:Rude",
        offers=["messages", "tools"],
        harness={"name": "simple"},
    )
    monkeypatch.setenv("GYMFLOW_PATH", str(tmp_path))
    rules = [{"contains": "water", "tool_calls": [{"name": "look", "arguments": {}}]}, {"text": "no"}]
    card = await run(scripted(environments=[{"name": "rude"}], rules=rules, limits={"max_attempts": 1}))
    (line,) = card.lines
    assert (line.scored, line.failed) == (1, 1)
    assert [(one.kind, one.rollouts) for one in line.failures] == [(kind, 1)]
    assert words in line.failures[0].words


@pytest.mark.parametrize("ending", ["raise asyncio.CancelledError", "raise SystemExit(3)"])
async def test_what_a_verifier_does_fails_its_own_verdict(run, rows, tmp_path, monkeypatch, ending):
    code = VERIFIER.replace(
        "        said, wanted",
        f"        if evidence.final_text == 'boom':\n            {ending}\n        said, wanted",
        1,
    )
    write_environment(tmp_path / "environments" / "rude", code="import asyncio\n" + code)
    monkeypatch.setenv("GYMFLOW_PATH", str(tmp_path))
    rules = [{"contains": "water", "text": "boom"}, {"text": "no"}]
    card = await run(scripted(environments=[{"name": "rude"}], rules=rules))
    (line,) = card.lines
    assert (line.scored, line.unverified, line.failed) == (1, 1, 0)
    assert [one.kind for one in line.failures] == ["verifier_error"]
