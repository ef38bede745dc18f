"""Decisions: chosen from the ranked list, kept as a table, and held against the run that tests them."""

import asyncio
import json
from typing import Any

import pytest

from cli.compare import compare_runs
from cli.decide import decide_run
from flows.decide import _form
from flows.decide import decide as decide_flow
from gymflow.analysis.compare import compare
from gymflow.analysis.decide import choice_of, choices, decide, prediction, ranked
from gymflow.analysis.diagnose import diagnose, last_diagnosis
from gymflow.analysis.health import current_report
from gymflow.contracts.comparison import Difference
from gymflow.contracts.decision import Decision
from gymflow.contracts.estimate import Interval
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.errors import InputError
from gymflow.registry import Registry
from gymflow.runtime.preparing import prepare
from gymflow.runtime.rejudging import Change
from gymflow.runtime.rescoring import rescore
from gymflow.store import connect
from gymflow.store.decisions import find_decision
from tests.support.runs import scripted

from .conftest import LETTERS, Planter, Said, Sample, answering


def mixed(planter: Planter, run_id: str = "base") -> str:
    """Twelve tasks of two repeats: ten never answer, one fails for infrastructure, one passes."""
    silent = [Sample([Said("I cannot say more.")]), Sample([Said("Well.", finish="length")], stop=StopReason.MAX_TURNS)]
    tasks: list[list[Sample]] = [silent] * 10
    tasks.append([Sample(failed=FailureKind.MODEL_ERROR), answering(planter.gold(10))])
    tasks.append([answering(planter.gold(11))] * 2)
    return planter.run(run_id, tasks)


def all_right(planter: Planter, run_id: str, **document: Any) -> str:
    return planter.run(run_id, [[answering(planter.gold(task))] * 2 for task in range(12)], **document)


def decided(planter: Planter, choice: str = "1") -> Decision:
    diagnosis = asyncio.run(ranked(planter.store, mixed(planter)))
    return decide(planter.store, diagnosis, choice, decided_by="Ada", reason="it promises most")


def test_a_decision_keeps_what_was_chosen_from_which_list_by_whom_and_why(planter: Planter) -> None:
    made = decided(planter, "2")
    diagnosis = last_diagnosis(planter.store.run("base"))
    assert diagnosis is not None
    chosen = diagnosis.proposals[1]
    assert (made.rank, made.choices) == (2, len(diagnosis.proposals))
    assert (made.intervention, made.gain, made.rollouts) == (chosen.intervention, chosen.gain, chosen.rollouts)
    assert (made.decided_by, made.reason, made.verdict_set) == ("Ada", "it promises most", "first")
    assert made.score == pytest.approx(2 / 12)
    assert find_decision(planter.store, made.decision_id[:5]) == made


def test_decisions_are_a_view_with_the_runs_that_test_them(planter: Planter) -> None:
    made = decided(planter)
    all_right(planter, "after", tests_decision=made.decision_id)
    with connect(planter.store.root) as connection:
        columns = "decision_id, run_id, intervention, gain, decided_by, reason, supported_by, tested_by"
        rows = connection.execute(f"select {columns} from decisions").fetchall()
    assert rows == [
        (
            made.decision_id,
            "base",
            made.intervention,
            made.gain,
            "Ada",
            "it promises most",
            made.supported_by,
            ["after"],
        )
    ]


@pytest.mark.parametrize("listed", [["1: model_training"], ["1: model_training", "2: prompt_change"]])
def test_the_form_offers_a_list_also_where_there_is_one_choice(planter: Planter, listed: list[str]) -> None:
    form = _form(asyncio.run(ranked(planter.store, mixed(planter))), listed, None, None)
    offered = form.model_json_schema()["properties"]["intervention"]
    assert offered["enum"] == listed and "const" not in offered
    assert form(intervention=listed[0], decided_by="Ada", reason="first").intervention == listed[0]


def test_a_choice_is_a_rank_a_name_or_a_line_of_the_list(planter: Planter) -> None:
    diagnosis = asyncio.run(ranked(planter.store, mixed(planter)))
    listed = choices(diagnosis)
    for rank, (line, proposal) in enumerate(zip(listed, diagnosis.proposals, strict=True), 1):
        assert choice_of(diagnosis, str(rank)) == choice_of(diagnosis, line) == rank
        assert choice_of(diagnosis, proposal.intervention) == rank
    with pytest.raises(InputError, match="did you mean infrastructure_repair"):
        choice_of(diagnosis, "infrastructure_repairs")
    for wrong in ("99", "1.9", "1. anything", "0"):
        with pytest.raises(InputError, match=f"1 to {len(listed)}"):
            choice_of(diagnosis, wrong)


def test_who_and_why_must_be_said_and_a_flawless_run_offers_nothing(planter: Planter) -> None:
    diagnosis = asyncio.run(ranked(planter.store, mixed(planter)))
    with pytest.raises(InputError, match="who decided, and why"):
        decide(planter.store, diagnosis, "1", decided_by="Ada", reason="  ")
    flawless = asyncio.run(ranked(planter.store, all_right(planter, "good")))
    with pytest.raises(InputError, match="proposes nothing"):
        decide(planter.store, flawless, "1", decided_by="Ada", reason="x")


def test_the_list_is_of_what_the_run_holds_now(planter: Planter) -> None:
    mixed(planter)
    first = asyncio.run(diagnose(planter.store, "base"))
    path = planter.store.layout.run("base").reports / "diagnosis.json"
    written = path.stat().st_mtime_ns
    assert asyncio.run(ranked(planter.store, "base")) == first
    assert path.stat().st_mtime_ns == written, "a diagnosis that still holds was made again"
    text = path.read_text()
    path.write_text(text.replace(f'"records":{first.records}', '"records":1', 1))
    assert asyncio.run(ranked(planter.store, "base")) == first


async def test_a_rollout_that_was_made_again_makes_the_reports_of_before_stale(planter: Planter) -> None:
    await planter._write("r", [[Sample(failed=FailureKind.MODEL_ERROR)], [answering(planter.gold(1))]], {})
    reader = planter.store.run("r")
    assert (await ranked(planter.store, "r")).causes[0].cause == "failed"
    assert current_report(planter.store, reader).unhealthy == 1
    row = next(row for row in reader.plan() if row.plan_index == 0)
    record = planter._record("r", row, answering(planter.gold(0)), 0)
    async with planter.store.writer("r") as writer:
        await writer.commit(record, [await planter._verdict(record, 0)])
        await writer.finish()
    assert "failed" not in {cause.cause for cause in (await ranked(planter.store, "r")).causes}
    assert current_report(planter.store, reader).unhealthy == 0


def test_a_run_that_tests_a_decision_is_held_against_it(planter: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    made = decided(planter)
    all_right(planter, "after", tests_decision=made.decision_id)
    [line] = compare(planter.store, "base", ["after"]).candidates
    assert line.prediction is not None
    assert (line.prediction.outcome, line.prediction.decision_id) == ("came", made.decision_id)
    assert line.prediction.observed == pytest.approx(10 / 12)
    compare_runs(
        "base",
        ["after"],
        by=[],
        gates=[],
        gates_file=None,
        effect=None,
        verdicts=None,
        store=str(planter.store.root),
        inline=True,
        json=False,
    )
    assert made.decision_id in capsys.readouterr().out


@pytest.mark.parametrize("also_base", [False, True])
def test_scores_of_another_verifier_than_the_decisions_do_not_tell_whether_the_gain_came(
    planter: Planter, also_base: bool
) -> None:
    made = decided(planter)
    all_right(planter, "after", tests_decision=made.decision_id)
    for run_id in ["after", *(["base"] if also_base else [])]:
        change = Change(parameters={"mode": "lenient"})
        asyncio.run(rescore(planter.store, run_id, change, Registry()))
    [line] = compare(planter.store, "base", ["after"]).candidates
    assert line.prediction is not None and line.prediction.outcome == "not_comparable"
    assert "made in verdict set first" in line.prediction.detail
    [line] = compare(planter.store, "base", ["after"], verdict_set="first").candidates
    assert line.prediction is not None and line.prediction.outcome == "came"


def test_a_decision_that_is_gone_is_a_warning(planter: Planter) -> None:
    mixed(planter)
    all_right(planter, "after", tests_decision="d-gone")
    [line] = compare(planter.store, "base", ["after"]).candidates
    assert line.prediction is None and any("d-gone" in warning for warning in line.warnings)


@pytest.mark.parametrize(
    ("value", "low", "high", "outcome"),
    [
        (0.2, 0.1, 0.3, "came"),
        (0.05, 0.01, 0.09, "came_in_part"),
        (0.05, -0.01, 0.3, "not_shown"),
        (-0.2, -0.3, -0.1, "got_worse"),
    ],
)
def test_the_interval_decides_whether_the_gain_came(value: float, low: float, high: float, outcome: str) -> None:
    made = Decision(
        decision_id="d-1",
        run_id="base",
        verdict_set="first",
        environment="mcqa",
        agent="policy",
        intervention="prompt_change",
        rank=1,
        choices=2,
        gain=0.25,
        score=0.5,
        rollouts=9,
        supported_by=["base-0"],
        decided_at=1.0,
        decided_by="Ada",
        reason="to see",
    )
    found = Difference(
        base=0.5,
        candidate=0.5 + value,
        difference=value,
        interval=Interval(low=low, high=high, method="t"),
        tasks=9,
        groups=9,
    )
    assert prediction(made, "base", made.agent, found).outcome == outcome
    assert prediction(made, "another", made.agent, found).outcome == "not_comparable"
    assert prediction(made, "base", "another", found).outcome == "not_comparable"
    assert prediction(made, "base", made.agent, None).outcome == "not_comparable"


def test_the_command_records_and_a_pipe_is_told_what_is_missing(
    planter: Planter, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed(planter)
    given: dict[str, Any] = {"decided_by": "Ada", "store": str(planter.store.root), "inline": True, "json": True}
    decide_run("base", choose="1", reason="because", **given)
    printed = json.loads(capsys.readouterr().out)
    assert find_decision(planter.store, printed["decision_id"]).model_dump(mode="json") == printed
    with pytest.raises(InputError, match=r"--choose is needed.*1\. "):
        decide_run("base", choose=None, reason="because", **given)
    with pytest.raises(InputError, match="--reason is needed"):
        decide_run("base", choose="1", reason=None, **given)


async def test_without_a_ui_the_flow_says_what_there_is_to_choose_from(planter: Planter) -> None:
    await planter._write("base", [[answering(LETTERS[3])], [answering(planter.gold(1))]], {})
    with pytest.raises(InputError, match=r"choose one of: 1\. "):
        await decide_flow("base", store=str(planter.store.root))


async def test_a_run_names_the_decision_that_it_tests_and_keeps_the_name_when_it_grows(planter: Planter) -> None:
    place = planter.store
    await planter._write("base", [[answering(LETTERS[3])], [answering(planter.gold(1))]], {})
    diagnosis = await ranked(place, "base")
    made, other = (decide(place, diagnosis, "1", decided_by="Ada", reason=why) for why in ("to test it", "another"))

    async def planned(run_id: str, decision: str | None, repeats: int = 1) -> str | None:
        await prepare(place, run_id, scripted(repeats=repeats), Registry(), decision=decision)
        return place.document(run_id).tests_decision

    assert await planned("tested", made.decision_id[:6]) == made.decision_id
    assert await planned("tested", None, repeats=2) == made.decision_id
    assert await planned("late", None) is None
    assert await planned("late", other.decision_id) == other.decision_id
    with pytest.raises(InputError, match=f"tests decision {made.decision_id} already"):
        await planned("tested", other.decision_id, repeats=2)
    with pytest.raises(InputError, match="no decision"):
        await planned("third", "d-nothing")
    assert not place.layout.run("third").document.exists()
