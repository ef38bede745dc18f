"""Scoring stored rollouts again: the report of it, failed verdicts recovered, verdicts taken over, evidence that is missing."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.reverify import reverify
from gymflow.analysis.compare import compare
from gymflow.errors import InputError
from gymflow.store import Store
from tests.support.environments import VERIFIER, write_environment
from tests.support.runs import scripted

LENIENT = {"mode": "lenient"}
SAID = [{"matches": "Is water", "text": "Yes"}, {"text": "no"}]


@pytest.fixture
def health() -> bool:
    """No test here is about the examination of a run."""
    return False


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """`own(code)`: a configuration over an environment with its own verifier."""

    def config(code: str = VERIFIER, rules: Any = SAID, **manifest: Any) -> Any:
        folder = write_environment(tmp_path / "fish", code=code, **manifest)
        return scripted(environments=[{"name": str(folder)}], rules=rules)

    return config


async def test_other_parameters_give_another_set_and_both_scores(run, rows, store, own):
    await run(own())
    report = await reverify("r", {"strict": False}, str(store))
    (line,) = report.lines
    assert (line.old_score, line.new_score, line.difference.value) == (0.5, 1.0, 0.5)
    assert (line.rollouts, line.gained, line.lost, line.without) == (2, 1, 0, 0)
    (flip,) = report.flips
    assert (flip.task_id, flip.repeat, flip.old_reward, flip.new_reward) == ("a", 0, 0.0, 1.0)
    (change,) = report.changes
    assert change.parameters == {"strict": (True, False)} and not change.code_changed
    assert (report.scored, report.reused, report.unchanged) == (2, 0, False)
    assert rows("select count(*) from verdicts") == [(4,)]


async def test_an_unchanged_verifier_judges_nothing_and_says_so(run, rows, store, own):
    await run(own())
    before = rows("select * from verdicts order by all")
    report = await reverify("r", {}, str(store))
    assert report.unchanged and (report.scored, report.reused) == (0, 2)
    assert report.flips == [] and rows("select * from verdicts order by all") == before


async def test_going_back_to_the_first_verifier_makes_its_set_current_again(run, rows, store, own):
    await run(own())
    await reverify("r", {"strict": False}, str(store))
    report = await reverify("r", {}, str(store))
    assert (report.scored, report.reused) == (0, 2)
    assert rows("select avg(reward) from outcomes where is_current") == [(0.5,)]


async def test_changed_code_is_shown_as_a_difference(run, store, own):
    await run(own())
    own(VERIFIER.replace("said == wanted", "said == wanted and len(said) > 2"))
    report = await _in_another_process(store)
    (change,) = report["changes"]
    assert change["code_changed"] and change["code_digest"][0] != change["code_digest"][1]
    assert "-        return Verdict(reward=float(said == wanted))" in change["code_diff"]
    assert "+        return Verdict(reward=float(said == wanted and len(said) > 2))" in change["code_diff"]


async def _in_another_process(store: Path, *options: str) -> Any:
    """Changed modules are only seen by a new process."""
    command = [sys.executable, "-m", "cli.main", "eval", "reverify", "r", "--store", str(store), "--json", *options]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


FRAGILE = VERIFIER.replace(
    "        said, wanted = evidence.final_text, task.answer\n",
    "        import os\n"
    "        if task.answer == 'no' and os.environ.get('FRAGILE'):\n"
    "            raise RuntimeError('the lamp is out')\n"
    "        said, wanted = evidence.final_text, task.answer\n",
)


async def test_failed_only_recovers_failures_and_takes_the_others_over(run, rows, store, own, monkeypatch):
    config = own(FRAGILE, rules=[{"matches": "Is water", "text": "yes"}, {"text": "no"}])
    monkeypatch.setenv("FRAGILE", "")
    await run(config, "fine")
    monkeypatch.setenv("FRAGILE", "1")
    with pytest.raises(InputError):
        await run(config, "never")
    monkeypatch.setenv("FRAGILE", "")
    card = await run(config, "r")
    assert card.lines[0].scored == 2
    monkeypatch.setenv("FRAGILE", "1")
    report = await reverify("r", {"strict": False}, str(store))
    assert [(one.failure, one.rollouts) for one in report.refused] == [("verifier_error", 1)]
    assert "the lamp is out" in report.refused[0].reason and report.lines[0].newly_without == 1
    monkeypatch.setenv("FRAGILE", "")
    report = await reverify("r", {"strict": False}, str(store), failed_only=True)
    assert (report.scored, report.reused, report.lines[0].recovered) == (1, 1, 1)
    assert report.refused == []
    sets = rows("select verdict_set, refers_to from verdict_sets where run_id = 'r' order by position")
    assert len(sets) == 3 and sets[2][1] == sets[1][0]
    assert rows("select outcome, count(*) from outcomes where run_id = 'r' and is_current group by 1") == [
        ("scored", 2)
    ]
    assert rows(f"select count(*) from verdicts where run_id = 'r' and judged_in = '{sets[2][0]}'") == [(1,)]


async def test_failed_only_without_failures_changes_nothing(run, rows, store, own):
    await run(own())
    report = await reverify("r", {}, str(store), failed_only=True)
    assert (report.scored, report.reused, report.unchanged) == (0, 2, True)
    assert rows("select count(*) from verdict_sets") == [(1,)]


async def test_failed_only_judges_as_the_set_that_it_completes(run, rows, store, own, monkeypatch):
    monkeypatch.setenv("FRAGILE", "")
    await run(own(FRAGILE, rules=[{"matches": "Is water", "text": "Yes"}, {"text": "No"}]))
    monkeypatch.setenv("FRAGILE", "1")
    await reverify("r", {"strict": False}, str(store))
    monkeypatch.setenv("FRAGILE", "")
    with pytest.raises(InputError, match=r"as it was judged.*its parameters differ; leave --failed-only out"):
        await reverify("r", {"strict": True}, str(store), failed_only=True)
    with pytest.raises(InputError, match=r"the verifier and .* differ"):
        await reverify("r", {}, str(store), verifier="episode", failed_only=True)
    report = await reverify("r", {}, str(store), failed_only=True)
    assert (report.scored, report.lines[0].new_score) == (1, 1.0)
    digests = "select distinct parameter_digest from verdicts join verdict_sets s using (run_id, verdict_set)"
    assert len(rows(f"{digests} where s.position > 0")) == 1


RECORDED = VERIFIER.replace("    class Parameters", '    rerun = "live"\n\n    class Parameters')


async def test_a_verifier_that_cannot_be_rerun_is_refused_by_name(run, store, own):
    await run(own(RECORDED))
    with pytest.raises(InputError, match=r"fish.*live"):
        await reverify("r", {}, str(store))


async def test_verdicts_that_cannot_be_made_again_are_kept_beside_new_ones(run, rows, store, tmp_path):
    kept = write_environment(tmp_path / "kept", code=RECORDED)
    rules = [{"matches": "Is water", "text": "yes"}, {"text": "The answer is (A)."}]
    await run(scripted(environments=[{"name": "mcqa", "limit": 3}, {"name": str(kept)}], rules=rules))
    assert (await reverify("r", {}, str(store))).unchanged
    report = await reverify("r", LENIENT, str(store))
    assert rows("select environment, outcome, count(*) from outcomes where is_current group by all order by 1") == [
        ("kept", "scored", 2),
        ("mcqa", "scored", 3),
    ]
    (refused,) = [one for one in report.refused if one.kept]
    assert refused.environment == "kept" and refused.rollouts == 2 and "live" in refused.reason


STATEFUL = VERIFIER.replace("    class Parameters", '    needs = frozenset({"state"})\n\n    class Parameters')


async def test_the_missing_piece_of_evidence_is_named(run, store, own, tmp_path, monkeypatch):
    await run(own())
    root = tmp_path / "root" / "verifiers"
    root.mkdir(parents=True)
    (root / "same.py").write_text(STATEFUL)
    monkeypatch.setenv("GYMFLOW_PATH", str(tmp_path / "root"))
    report = await reverify("r", {}, str(store), verifier="same")
    (refused,) = report.refused
    assert refused.rollouts == 2 and "it needs state" in refused.reason and "no snapshot" in refused.reason


COUNTER = '''"""Counts."""

from gymflow.environments import Observation, Session, Snapshot, ToolResult, function_tool

OFFSET = {offset}


class Counter(Session):
    """A number."""

    async def start(self) -> Observation:
        self.count = OFFSET
        return Observation()

    async def tools(self) -> list[dict]:
        return [function_tool("add", "Add one.", {{}})]

    async def call(self, tool: str, arguments: dict) -> ToolResult:
        self.count += 1
        return ToolResult(str(self.count))

    async def snapshot(self) -> Snapshot:
        return Snapshot({{"count": self.count}})
'''
REPLAY = '''"""The number that was reached."""

from pydantic import BaseModel

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier


class CountTask(BaseModel):
    answer: str


class Count(Verifier[CountTask]):
    needs = frozenset({"state"})
    rerun = "replay"

    class Parameters(BaseParameters):
        wanted: int = 2

    async def verify(self, task: CountTask, evidence: Evidence) -> Verdict:
        count = evidence.snapshot["count"]
        return Verdict(reward=float(count == self.parameters.wanted), extracted_answer=str(count))
'''


@pytest.fixture
def counting(tmp_path: Path) -> Any:
    def config(offset: int = 0) -> Any:
        call = {"tool_calls": [{"name": "add"}]}
        fixtures = [
            {
                "kind": kind,
                "task_id": "a",
                "actions": [{"name": "add"}] * (2 if kind == "full" else 1),
                "reward": float(kind == "full"),
            }
            for kind in ("full", "none", "near_miss", "format_variant", "malformed", "empty")
        ]
        folder = write_environment(
            tmp_path / "counting",
            code=REPLAY,
            fixtures=fixtures,
            files={"session.py": COUNTER.format(offset=offset)},
            session="session:Counter",
            offers=["messages", "tools"],
            harness={"name": "simple"},
        )
        rules = [call | {"turn": 0}, call | {"turn": 1}, {"text": "done"}]
        return scripted(environments=[{"name": str(folder)}], rules=rules)

    return config


async def test_actions_are_played_again_for_a_verifier_that_wants_it(run, rows, store, counting):
    card = await run(counting())
    assert card.lines[0].score == 1.0
    report = await reverify("r", {"wanted": 3}, str(store))
    assert report.lines[0].new_score == 0.0 and report.refused == []
    assert rows("select distinct extracted_answer from verdicts") == [("2",)]


async def test_a_replay_that_meets_another_environment_is_refused(run, store, counting):
    await run(counting())
    counting(offset=50)  # of another length: byte code is told to be stale by second and size alone
    assert (await _in_another_process(store))["unchanged"]
    report = await _in_another_process(store, "--set", "verifier.wanted=3")
    (refused,) = report["refused"]
    assert refused["rollouts"] == 2 and "the replay differs: turn 0, tool call 0 (add) gave '51'" in refused["reason"]


async def test_labels_say_how_far_people_agree(run, store, own, tmp_path):
    await run(own())
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"task_id": "a", "label": true}\n{"rollout_id": "r-1", "label": true}\n')
    report = await reverify("r", {}, str(store), labels=str(labels))
    assert report.agreement.matched == 2 and report.agreement.observed == 0.5
    assert (report.agreement.true_pass, report.agreement.false_fail) == (1, 1)
    labels.write_text('{"task_id": "zzz", "label": true}\n')
    with pytest.raises(InputError, match="none of its 1 labels"):
        await reverify("r", {}, str(store), labels=str(labels))
    labels.write_text('{"task_id": "a", "label": "maybe"}\n')
    with pytest.raises(InputError, match=r"labels.jsonl:1: label"):
        await reverify("r", {}, str(store), labels=str(labels))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"task_id": "a", "repeat": "one", "label": True}, r"labels.jsonl:2: repeat: .*'one'"),
        ({"task_id": "a", "repeat": -1, "label": True}, r"labels.jsonl:2: repeat"),
        ({"rollout_id": "r-99", "label": True}, r"labels.jsonl:2: run r has no rollout 'r-99'"),
        ({"rollout_id": "r-0", "label": False}, r"labels.jsonl:2: r-0 has the other label at .*labels.jsonl:1"),
    ],
)
async def test_a_label_that_is_about_nothing_or_contradicts_is_named(run, store, own, tmp_path, line, message):
    await run(own())
    labels = tmp_path / "labels.jsonl"
    labels.write_text(json.dumps({"task_id": "a", "label": True}) + "\n" + json.dumps(line) + "\n")
    with pytest.raises(InputError, match=message):
        await reverify("r", {}, str(store), labels=str(labels))


async def test_a_rollout_that_is_labelled_twice_counts_once(run, store, own, tmp_path):
    await run(own())
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"task_id": "a", "label": true}\n{"rollout_id": "r-0", "label": true}\n')
    report = await reverify("r", {}, str(store), labels=str(labels))
    assert (report.agreement.labels, report.agreement.matched) == (1, 1)


async def test_the_report_lies_with_the_run(run, store, own):
    await run(own())
    report = await reverify("r", {"strict": False}, str(store))
    stored = json.loads((Store(store).layout.run("r").reports / f"reverify-{report.new_set}.json").read_text())
    assert stored == report.model_dump(mode="json")


async def test_a_comparison_of_what_was_judged_otherwise_says_how_and_in_which_set_it_was_not(run, store, own):
    await run(own(), "one")
    await run(own(), "two")
    await reverify("two", {"strict": False}, str(store))
    [line] = compare(Store(store), "one", ["two"]).candidates
    assert line.varies == ["verifier"] and line.details == ["verifier.strict True → False"]
    [warning] = line.warnings
    [line] = compare(Store(store), "one", ["two"], verdict_set=warning.rpartition(" ")[2]).candidates
    assert (line.varies, line.warnings, line.score.difference) == ([], [], 0.0)
