"""`gym runs` and `gym show`: what a store holds, from the list of runs down to one rollout."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from flows.evaluate import evaluate
from flows.reverify import reverify
from gymflow.errors import RunIncomplete
from gymflow.store import Store
from tests.support.command import Ended, Gym
from tests.support.runs import scripted

Command = Callable[..., Ended]
ESCAPE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m [bold]not markup[/bold] 日本語\r\nsecond line \u202eright to left"
TOOLS = [
    {"turn": 0, "reasoning": "Let me look first.", "tool_calls": [{"name": "search_mail", "arguments": {"query": "x"}}, {"name": "no_such", "arguments": "{bad"}]},
    {"turn": 1, "error": {"status": 503, "message": "the GPU is \x1b[2J busy"}, "times": 1},
    {"turn": 1, "text": ESCAPE},
]  # fmt: skip


async def _fill(root: str) -> None:
    await evaluate(scripted(repeats=3), "answers", root)
    await reverify("answers", {"mode": "lenient"}, root)
    office = scripted(
        rules=TOOLS,
        environments=[{"name": "workplace", "limit": 2}],
        models={"policy": {"provider": "scripted", "parameters": {"rules": TOOLS}, "max_retries": 2}},
    )
    await evaluate(office, "office", root)
    long = scripted(rules=[{"text": "crane"}], environments=[{"name": "word_guess", "limit": 1}])
    await evaluate(long, "long", root)
    broken = [{"error": {"status": 400, "message": "no such thing", "retryable": False}, "times": 2}, {"text": "A"}]
    policy = {"provider": "scripted", "parameters": {"rules": broken}, "max_retries": 0}
    partly = scripted(models={"policy": policy}, limits={"max_attempts": 1, "concurrency": 1}, name="partly")
    with pytest.raises(RunIncomplete):
        await evaluate(partly, "partly", root)
    two = {
        name: {"provider": "scripted", "model": name, "parameters": {"rules": [{"text": "A"}]}}
        for name in ("one", "two")
    }
    await evaluate(scripted(models=two), "two-agents", root)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with five runs."""
    root = tmp_path_factory.mktemp("filled")
    os.environ["XDG_CACHE_HOME"] = str(root / "cache")
    asyncio.run(_fill(str(root / "store")))
    return root / "store"


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, ...], Ended]:
    """What commands answered: the store does not change."""
    return {}


@pytest.fixture
def gym(filled: Path, here: Gym, answers: dict[tuple[str, ...], Ended], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("GYMFLOW_STORE", str(filled))

    def ask(*arguments: str) -> Ended:
        if arguments not in answers:
            answers[arguments] = here(*arguments)
        return answers[arguments]

    return ask


def test_runs_are_listed_newest_first(gym: Command) -> None:
    listed = gym("runs", "--json").json
    assert [one["run_id"] for one in listed] == ["two-agents", "partly", "long", "office", "answers"]
    answers = listed[-1]
    assert (answers["planned"], answers["scored"], answers["missing"]) == (12, 12, 0)
    assert answers["verdict_sets"] == 2 and answers["being_written"] is False
    assert len(answers["fingerprint"]) == 64 and answers["created_at"].endswith("Z")
    rows = [line.split("\t") for line in gym("runs").out.splitlines()]
    assert [row[0] for row in rows] == [one["run_id"] for one in listed]
    assert [row[1] for row in rows] == ["complete", "incomplete", "complete", "complete", "complete"]
    assert rows[1][5] == "2/4 scored, 2 failed" and rows[0][6].startswith("single_turn@one ")


def test_listing_reads_no_bodies(
    gym: Command, here: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:  # io-summary-without-bodies
    """With the files of evidence, calls and tokens gone everything is still answered."""
    import gymflow.store.views as views

    narrow = {"plan", "tasks", "rollouts", "verdicts"}
    opened: list[str] = []
    real = views._scan_of

    def scan(connection: Any, table: str, schema: Any, paths: list[Path], *rest: Any) -> Any:
        opened.append(table)
        return real(connection, table, schema, paths if table in narrow else [], *rest)

    monkeypatch.setattr(views, "_scan_of", scan)
    assert len(here("runs", "--json").json) == 5
    assert here("show", "answers", "--json").json["scorecard"]["lines"][0]["scored"] == 12
    assert "evidence" in opened


def test_a_run_shows_scorecard_and_tasks_the_worst_first(gym: Command) -> None:
    shown = gym("show", "answers")
    assert shown.code == 0 and "12/12 scored" in shown.out and "verdict sets, the current one last" in shown.out
    whole = gym("show", "answers", "--json").json
    rewards = [task["reward"] for task in whole["tasks"]]
    assert rewards == sorted(rewards) and {task["rollouts"] for task in whole["tasks"]} == {3}
    partly = gym("show", "partly", "--json").json["tasks"]
    assert [(task["failed"], task["reward"]) for task in partly[:2]] == [(1, None), (1, None)]
    assert "2 model_error" in gym("show", "partly").out and "1 failed" in gym("show", "partly").out


def test_a_task_shows_its_repeats_with_reason_and_end(gym: Command) -> None:
    task = gym("show", "answers", "--json").json["tasks"][-1]["task_id"]
    shown = gym("show", "answers", task)
    assert "expected_answer:" in shown.out and "finished" in shown.out
    repeats = gym("show", "answers", task, "--json").json["repeats"]
    assert [one["repeat"] for one in repeats] == [0, 1, 2]
    assert {one["outcome"] for one in repeats} == {"scored"} and repeats[0]["extracted_answer"] == "A"
    failed = gym("show", "partly", "--json").json["tasks"][0]["task_id"]
    assert "model_error" in gym("show", "partly", failed).out and "no such thing" in gym("show", "partly", failed).out


def test_a_repeat_shows_the_whole_trajectory_each_thing_once(gym: Command) -> None:
    task = gym("show", "office", "--json").json["tasks"][0]["task_id"]
    out = gym("show", "office", task, "0").out
    for part in (
        "── turn 0", "── turn 1", "Let me look first.", 'tool search_mail {"query":"x"}  [ok, ',
        "tool no_such {bad  [unknown_tool, ", "Error: there is no tool 'no_such'.", "2 attempts", "reward 0, not passed",
        "by state ", "final state",
    ):  # fmt: skip
        assert part in out, part
    assert out.count("You are the assistant of") == 1
    assert out.count("Error: there is no tool 'no_such'.") == 1


def test_model_text_cannot_command_the_terminal(gym: Command) -> None:
    task = gym("show", "office", "--json").json["tasks"][0]["task_id"]
    out = gym("show", "office", task, "0").out
    assert "\x1b" not in out and "\x07" not in out and "\r" not in out and "\u202e" not in out
    assert "␛]0;owned␇␛[31mred␛[0m [bold]not markup[/bold] 日本語\n" in out
    assert "second line \\u202eright to left" in out


def test_json_of_a_repeat_is_the_whole_record(gym: Command) -> None:
    task = gym("show", "office", "--json").json["tasks"][0]["task_id"]
    record = gym("show", "office", task, "0", "--json").json
    assert len(record["evidence"]["trajectory"]["turns"]) == 2 and len(record["model_calls"]) == 2
    [verdict] = record["verdicts"]
    assert verdict["verdict_set"] == record["verdict_set"] and verdict["verdict"]["reward"] == 0.0
    assert record["evidence"]["response"]["output"][-1]["content"][0]["text"] == ESCAPE


def test_a_rollout_id_leads_straight_to_its_trajectory(gym: Command) -> None:
    [rollout] = gym("sql", "select rollout_id from rollouts where run_id = 'office' limit 1", "--json").json
    shown = gym("show", "office", rollout["rollout_id"]).out
    assert f"rollout {rollout['rollout_id']}" in shown
    assert gym("show", rollout["rollout_id"]).out == shown


def test_a_long_trajectory_has_an_index_and_spans(gym: Command) -> None:
    [task] = gym("show", "long", "--json").json["tasks"]
    whole = gym("show", "long", task["task_id"], "0").out
    turns = whole.count("── turn ")
    assert turns > 5 and "one of them: --turns 12, several: --turns 10-20" in whole
    some = gym("show", "long", task["task_id"], "0", "--turns", "2-3").out
    assert some.count("── turn ") == 2 and "── turn 2" in some and "reward " in some
    assert "environment" in some and "crane" in some


def test_an_earlier_verdict_set_can_be_asked_for(gym: Command) -> None:
    strict, lenient = gym("show", "answers", "--json").json["verdict_sets"]
    assert gym("show", "answers", "--json").json["scorecard"]["verdict_set"] == lenient
    assert gym("show", "answers", "--verdicts", strict[:4], "--json").json["scorecard"]["verdict_set"] == strict
    task = gym("show", "answers", "--json").json["tasks"][0]["task_id"]
    assert f"other sets: {strict}" in gym("show", "answers", task, "0").out


def test_names_may_be_cut_short_and_the_newest_run_has_one(gym: Command) -> None:
    assert gym("show", "ans", "--json").json["scorecard"]["run_id"] == "answers"
    assert gym("show", "latest", "--json").json["scorecard"]["run_id"] == "two-agents"
    task = gym("show", "answers", "--json").json["tasks"][0]["task_id"]
    assert gym("show", "answers", task[:-1]).code == 0
    assert gym("show", "answers", f"mcqa/{task}").code == 0


def test_several_agents_are_told_apart(gym: Command) -> None:
    task = gym("show", "latest", "--json").json["tasks"][0]["task_id"]
    ended = gym("show", "latest", task, "0")
    assert ended.code == 2 and "choose one with --agent" in ended.err
    assert "agent single_turn@two" in gym("show", "latest", task, "0", "--agent", "single_turn@two").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "answrs"], "did you mean answers?"),
        (["show", "o", "x"], "no task of office is called 'x'"),
        (["show", "answers", ""], "no task of answers is called ''"),
        (["show", "office", "test-"], "is the beginning of 2 names"),
        (["show", "answers", "best-alternative", "9"], "has no repeat 9; it has 0 to 2"),
        (["show", "answers", "best-alternative", "0", "--agent", "x"], "no agent 'x' played"),
        (["show", "answers", "best-alternative", "0", "--turns", "3-1"], "write a turn, such as 12"),
        (["show", "answers", "best-alternative", "0", "--turns", "5"], "has 1 turns, counted from 0"),
        (["show", "answers", "--turns", "1"], "--turns goes with a repeat"),
        (["show", "answers", "--verdicts", "zz"], "no verdict set of answers is called 'zz'"),
        (["show", "answers", "best-alternative", "first"], "repeat"),
        (["runs", "--store", "/nowhere/at/all"], "there is no store at /nowhere/at/all"),
        (["runs", "--store", "gs://bucket/prefix"], "gs://"),
    ],
)
def test_a_mistake_is_one_message(gym: Command, arguments: list[str], message: str) -> None:
    ended = gym(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err


def test_a_run_that_holds_nothing_yet_is_shown(here: Gym, store: Path) -> None:
    """As a process leaves it that dies between the plan and the first rollout."""
    from gymflow.registry import Registry
    from gymflow.runtime.preparing import prepare

    asyncio.run(prepare(Store(store), "empty", scripted(), Registry()))
    [listed] = here("runs", "--json").json
    assert (listed["scored"], listed["missing"], listed["verdict_set"]) == (0, 4, None)
    shown = here("show", "empty")
    assert shown.code == 0 and "0/4 scored" in shown.out and "4 rollouts are missing" in shown.out
    task = here("show", "empty", "--json").json["tasks"][0]["task_id"]
    assert "missing" in here("show", "empty", task).out
    ended = here("show", "empty", task, "0")
    assert ended.code == 2 and "was not sampled yet; `gym eval run --resume empty`" in ended.err


def test_results_are_json_alone_on_stdout(gym: Command) -> None:
    for command in (["runs"], ["show", "answers"], ["sql", "select 1 as one"], ["sql", "--schema"], ["doctor"]):
        ended = gym(*command, "--json")
        assert ended.code == 0 and orjson.loads(ended.out) and ended.err == ""
