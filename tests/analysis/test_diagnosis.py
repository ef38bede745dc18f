"""Diagnosis: planted causes are named, each by its name, and nothing is found where nothing was planted."""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gymflow.analysis.diagnose import citations, diagnose
from gymflow.analysis.diagnose.citations import check_citations
from gymflow.analysis.diagnose.labelling import rules
from gymflow.analysis.diagnose.sheets import headline
from gymflow.analysis.facts import facts
from gymflow.analysis.health import examine
from gymflow.analysis.judging import manifest_as_judged
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.contracts.outcome import FailureKind, StopReason, VerdictFailure
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import VerdictSet
from gymflow.contracts.verdict import Verdict, VerdictRecord
from gymflow.registry import Registry
from gymflow.runtime.rejudging import Change
from gymflow.runtime.rescoring import rescore

from .conftest import Planter, Said, Sample, answering, tool

Plant = Callable[[Planter, int], Sample]


def unscored(failure: VerdictFailure, message: str) -> Callable[[VerdictRecord], VerdictRecord]:
    return lambda verdict: verdict.model_copy(
        update={"verdict": None, "passed": None, "failure": failure, "failure_message": message}
    )


def wrong(planter: Planter, task: int, turns: Sequence[Said] = (), **fields: Any) -> Sample:
    """Turns, and then a wrong answer."""
    return Sample([*turns, Said(f"The answer is ({planter.wrong(task)}).")], **fields)


NO_FIT = "VerifierError: the task does not fit the verifier: expected_answer is none of the options"
FAILING = tool(arguments='{"at": "x"}', output="Error: no such place", status="error")

# Cause -> a rollout that fails for it. Every plant looks like a wrong answer, too: the specific cause has to win.
PLANTS: dict[str, Plant] = {
    "failed": lambda p, t: Sample(failed=FailureKind.MODEL_UNREACHABLE),
    "row_unreadable": lambda p, t: answering("A", verdict=unscored(VerdictFailure.VERIFIER_ERROR, NO_FIT)),
    "scoring_failed": lambda p, t: answering(
        "A", verdict=unscored(VerdictFailure.JUDGE_UNPARSEABLE, "no grade in the reply")
    ),
    "wrong_shape": lambda p, t: Sample([Said(f"Taken together this points to {p.gold(t)} more than to anything else")]),
    "looped_text": lambda p, t: Sample(
        [Said('Wait, "no".\nAgain. ' * 40, finish="length")], stop=StopReason.MAX_OUTPUT_TOKENS
    ),
    "looped_calls": lambda p, t: wrong(p, t, [Said(tools=[tool()])] * 4),
    "malformed_calls": lambda p, t: wrong(
        p, t, [Said(tools=[tool(arguments=f"{{{n}", status="malformed")]) for n in "ab"]
    ),
    "ignored_feedback": lambda p, t: wrong(p, t, [Said(tools=[FAILING]), Said(tools=[tool()]), Said(tools=[FAILING])]),
    "cut_off": lambda p, t: Sample([Said("First, let me see", finish="length")], stop=StopReason.MAX_OUTPUT_TOKENS),
    "out_of_budget": lambda p, t: Sample(
        [Said(tools=[tool(arguments=f'{{"at": {n}}}')]) for n in range(3)], stop=StopReason.MAX_TURNS
    ),
    "crashed": lambda p, t: wrong(p, t, stop=StopReason.OUT_OF_MEMORY),
    "refused": lambda p, t: Sample([Said("That I will not do.")], stop=StopReason.REFUSAL),
    "gave_up": lambda p, t: Sample([Said("I don't know what to make of this one.")]),
    "no_answer": lambda p, t: Sample([Said("An interesting question, with a long history.")]),
    "sometimes_right": lambda p, t: wrong(p, t),
}


def planted_run(planter: Planter, seed: int) -> tuple[str, dict[str, str]]:
    """Tasks with three repeats each in random order: three of each cause above beside passing repeats, tasks that nobody solves,
    tasks with a wrong gold answer, and as many healthy ones. Returns the cause by rollout id."""
    rng = random.Random(seed)
    kinds = [*PLANTS] * 3 + ["never_right"] * 4 + ["suspect_gold"] * 2 + ["healthy"] * 20
    rng.shuffle(kinds)
    tasks: list[list[Sample]] = []
    causes: dict[str, str] = {}
    for task, kind in enumerate(kinds):
        right = answering(planter.gold(task), change=lambda record: None)
        if kind == "healthy":
            repeats, failing = [right] * 3, []
        elif kind == "never_right":
            repeats, failing = [answering(planter.wrong(task, by)) for by in (1, 2, 3)], [0, 1, 2]
        elif kind == "suspect_gold":
            repeats, failing = [answering(planter.wrong(task))] * 3, [0, 1, 2]
        else:
            place = rng.randrange(3)
            repeats, failing = [right] * 3, [place]
            repeats[place] = PLANTS[kind](planter, task)
        causes |= {f"planted-{3 * task + repeat}": kind for repeat in failing}
        tasks.append(repeats)
    return planter.run("planted", tasks), causes


def labels_of(planter: Planter, run_id: str) -> dict[str, str]:
    report = json.loads((planter.store.layout.run(run_id).reports / "diagnosis.json").read_bytes())
    return {label["rollout_id"]: label["cause"] for label in report["labels"]}


def diagnosed(planter: Planter, run_id: str, **options: Any) -> Diagnosis:
    return asyncio.run(diagnose(planter.store, run_id, **options))


def test_planted_causes_are_named(planter: Planter) -> None:
    run_id, planted = planted_run(planter, seed=7)
    report = diagnosed(planter, run_id)
    found = labels_of(planter, run_id)
    assert len(set(planted.values())) >= 8
    for cause in sorted(set(planted.values()) | set(found.values())):
        here = {rollout for rollout, name in planted.items() if name == cause}
        named = {rollout for rollout, name in found.items() if name == cause}
        assert len(here & named) >= 0.9 * len(named), f"precision of {cause}: {sorted(named - here)}"
        assert len(here & named) >= 0.9 * len(here), f"recall of {cause}: {[found.get(one) for one in here - named]}"
    assert report.labelled == len(found)
    assert report.unexplained == report.rollouts - report.passed - report.missing - report.labelled == 0
    assert report.dropped_citations == 0


def test_a_run_in_which_all_is_well_gets_no_label(planter: Planter) -> None:
    loops = [Said(tools=[tool()])] * 4
    odd_but_right = Sample([*loops, Said(f"I don't know why, but the answer is ({planter.gold(0)}).")])
    report = diagnosed(
        planter, planter.run("fine", [[odd_but_right, answering(planter.gold(0))], [answering("B")] * 2])
    )
    assert (report.labelled, report.causes, report.proposals, report.suspects, report.look_first) == (0, [], [], [], [])
    assert [(funnel.biggest_drop, funnel.lost) for funnel in report.funnels] == [(None, 0)]


def test_an_answer_is_what_the_verifier_extracted_or_words_that_do_not_give_up(
    planter: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both where the verifier looks for an answer and where it extracts none, as judges and tests of programs do."""

    def silent(verdict: VerdictRecord) -> VerdictRecord:
        assert verdict.verdict is not None
        return verdict.model_copy(update={"verdict": verdict.verdict.model_copy(update={"extracted_answer": None})})

    unread = unscored(VerdictFailure.VERIFIER_ERROR, "down")
    words = "I don't know what to make of this one."
    thinking = Sample([Said("So it is Paris.")])

    def doubting(record: RolloutRecord) -> None:
        summary = [{"type": "summary_text", "text": "I don't know yet."}]
        record.evidence.response = {
            "output": [{"type": "reasoning", "summary": summary}, *record.model_calls[0].output]
        }

    thinking.change = doubting
    assert answered(planter, "extracting", [answering("B"), Sample([Said(words)]), Sample([Said("Paris")])]) == 1
    monkeypatch.setattr(type(planter.environment.verifier), "extracts", False)
    samples = [Sample([Said("So it is Paris.")]), Sample([Said(words)]), thinking]
    samples += [Sample([Said("That I will not do.")], stop=StopReason.REFUSAL), Sample([Said(words)])]
    for one in samples:
        one.verdict = silent
    samples[-1].verdict = unread
    assert answered(planter, "judged", samples) == 2
    assert labels_of(planter, "judged")["judged-1"] == "gave_up"


def answered(planter: Planter, run_id: str, repeats: list[Sample]) -> int:
    [funnel] = diagnosed(planter, planter.run(run_id, [repeats])).funnels
    return next(stage.rollouts for stage in funnel.stages if stage.name == "answered")


def test_a_cycle_of_calls_is_a_loop_and_calls_never_executed_are_none(planter: Planter) -> None:
    def looking(places: str, **fields: Any) -> list[Said]:
        return [Said(tools=[tool(arguments=at, output=at, **fields)]) for at in places]

    samples = [
        wrong(planter, 0, looking("121212")),
        wrong(planter, 0, looking("123141567")),
        wrong(planter, 0, looking("1111", status="not_executed")),
    ]
    run_id = planter.run("cycle", [samples])
    diagnosed(planter, run_id)
    assert labels_of(planter, run_id) == {
        "cycle-0": "looped_calls",
        "cycle-1": "never_right",
        "cycle-2": "never_right",
    }


def test_tools_that_passing_rollouts_use_and_this_one_does_not(planter: Planter) -> None:
    using = [[Sample([Said(tools=[tool()]), Said(f"The answer is ({planter.gold(t)}).")])] for t in range(3)]
    run_id = planter.run("tools", [*using, [answering(planter.wrong(3))]])
    diagnosed(planter, run_id)
    assert labels_of(planter, run_id) == {"tools-3": "skipped_tool"}


def test_rows_that_contradict_each_other_are_an_artifact_of_the_data(planter: Planter) -> None:
    # Tasks 0 and 4 have the same key and the gold answers A and B.
    planter.gold = lambda task: "B" if task == 4 else "A"  # type: ignore[method-assign]
    before = planter._planned, planter._task
    planter._planned = lambda at, task, repeat: before[0](at, task, repeat).model_copy(
        update={"task_key": f"task{task % 4}"}
    )  # type: ignore[method-assign]
    planter._task = lambda task: before[1](task).model_copy(update={"task_key": f"task{task % 4}"})  # type: ignore[method-assign]
    run_id = planter.run("contradicting", [[answering("A")]] * 5)
    report = diagnosed(planter, run_id)
    assert labels_of(planter, run_id) == {"contradicting-4": "conflicting_rows"}
    assert [(one.rollout_id, one.shows) for one in report.causes[0].examples[0].citations] == [
        ("contradicting-4", "false"),
        ("contradicting-0", "true"),
    ]


def test_buckets_funnel_and_gains(planter: Planter) -> None:
    a, b = planter.gold(0), planter.gold(1)
    run_id = planter.run(
        "counts",
        [
            [answering(a), answering(a)],
            [answering(b), Sample([Said("Not an answer.")])],
            [answering(planter.wrong(2)), answering(planter.wrong(2, 2))],
            [Sample(failed=FailureKind.MODEL_ERROR), Sample(missing=True)],
        ],
    )
    report = diagnosed(planter, run_id)
    [buckets] = report.buckets
    assert (buckets.always, buckets.sometimes, buckets.never, buckets.missing) == (1, 1, 1, 1)
    assert (buckets.sometimes_tasks, buckets.never_tasks) == (["q1"], ["q2"])
    [funnel] = report.funnels
    assert [stage.rollouts for stage in funnel.stages] == [8, 7, 6, 6, 5, 5, 3]
    assert (funnel.biggest_drop, funnel.lost) == ("passed", 2)
    # The score is (1 + 1/2 + 0) / 3 = 1/2. Two right answers more in task 2 add 1/3, one in task 1 adds 1/6; a repaired failure
    # brings task 3 in, with the top reward at best: (1 + 1/2 + 0 + 1) / 4 - 1/2.
    gains = {one.intervention: one.gain for one in report.proposals}
    assert gains == {
        "model_training": pytest.approx(1 / 3),
        "prompt_change": pytest.approx(1 / 6),
        "infrastructure_repair": pytest.approx(1 / 8),
    }
    assert [one.intervention for one in report.proposals] == [
        "model_training",
        "prompt_change",
        "infrastructure_repair",
    ]
    assert report.look_first[0].startswith("rollout counts-4: never_right, as in 2 of the 2 rollouts")
    assert (report.rollouts, report.passed, report.missing, report.labelled, report.unexplained) == (8, 3, 1, 4, 0)


def test_the_first_divergence_of_the_closest_pair(planter: Planter) -> None:
    def looking(*places: int, answer: str) -> Sample:
        return Sample(
            [*(Said(tools=[tool(arguments=f'{{"at": {n}}}')]) for n in places), Said(f"The answer is ({answer}).")]
        )

    right, other = planter.gold(0), planter.wrong(0)
    run_id = planter.run(
        "parted",
        [
            [looking(1, 2, 3, answer=right), looking(5, 2, 3, answer=other), looking(1, 2, 9, answer=other)],
            [answering("B")],
        ],
    )
    [found] = diagnosed(planter, run_id).divergences
    assert (found.task_id, found.passing, found.failing, found.turn) == ("q0", "parted-0", "parted-2", 2)
    assert (found.passing_move, found.failing_move) == ('look({"at": 3})', 'look({"at": 9})')
    assert [(one.rollout_id, one.locator, one.shows) for one in found.citations] == [
        ("parted-0", "verdict/passed", "true"),
        ("parted-0", "turns/2/tool_calls/0/arguments", '{"at": 3}'),
        ("parted-2", "verdict/passed", "false"),
        ("parted-2", "turns/2/tool_calls/0/arguments", '{"at": 9}'),
    ]


def test_the_diagnosis_is_the_same_slice_by_slice(planter: Planter, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, _ = planted_run(planter, seed=3)
    heads, labels = [], []
    for at_once in (7, citations.CITATIONS_AT_ONCE):
        monkeypatch.setattr(citations, "CITATIONS_AT_ONCE", at_once)
        head = diagnosed(planter, run_id)
        assert head.citations > 7
        # Sums of floats have no order of their own: the last digits of a gain are not always the same.
        gains = [one.model_copy(update={"gain": round(one.gain or 0.0, 9)}) for one in head.proposals]
        heads.append(head.model_copy(update={"proposals": gains}))
        labels.append(labels_of(planter, run_id))
    assert heads[0] == heads[1]
    assert labels[0] == labels[1]


def test_a_likely_wrong_gold_answer_is_suspect_only_with_a_reliable_agent(planter: Planter) -> None:
    solid = [[answering(planter.gold(task))] * 3 for task in range(4)]
    suspect = [[answering(planter.wrong(4))] * 3]
    [found] = diagnosed(planter, planter.run("reliable", solid + suspect)).suspects
    assert (found.task_id, found.reason, len(found.citations)) == ("q4", "unanimous_wrong_answer", 3)
    assert found.detail == f"all 3 repeats answer {planter.wrong(4)}, which is scored wrong"
    unreliable = [[answering(planter.wrong(task))] * 3 for task in range(4)]
    report = diagnosed(planter, planter.run("unreliable", [*unreliable, [answering(planter.gold(4))] * 3]))
    assert report.suspects == []
    assert {cause.cause for cause in report.causes} == {"never_right"}


def test_verdicts_that_change_between_sets_make_a_task_suspect(planter: Planter) -> None:
    run_id = planter.run("twice", [[answering(planter.gold(0))] * 2, [answering("B")]])

    async def score_again() -> None:
        judged = planter.environment.judged.model_copy(update={"version": "2"})
        async with planter.store.writer(run_id) as writer:
            await writer.add_verdict_set(VerdictSet(name="second", created_at=2.0, judged={"mcqa": judged}))
            for at, passed in enumerate((True, False, True)):
                await writer.commit_verdicts(
                    [
                        VerdictRecord(
                            run_id=run_id,
                            rollout_id=f"{run_id}-{at}",
                            verdict_set="second",
                            verdict_key=f"again{at}",
                            verdict=Verdict(reward=float(passed), extracted_answer="A"),
                            passed=passed,
                            duration_s=0.0,
                            judged=judged,
                        )
                    ]
                )
            await writer.finish()

    asyncio.run(score_again())
    [found] = diagnosed(planter, run_id).suspects
    assert (found.task_id, found.reason) == ("q0", "verdicts_differ_between_sets")
    assert found.detail == "1 of its verdicts changed from set first"
    assert [(one.rollout_id, one.shows) for one in found.citations] == [("twice-1", "false")]


def test_the_difference_to_an_earlier_run_is_divided_among_labels(planter: Planter) -> None:
    def tasks(second: Sample, third: Sample) -> list[list[Sample]]:
        return [[answering(planter.gold(0))], [second], [third], [answering(planter.wrong(3))]]

    planter.run("old", tasks(answering(planter.gold(1)), answering(planter.wrong(2))))
    planter.run("new", tasks(Sample([Said("No idea at all here.")]), answering(planter.gold(2))))
    [change] = diagnosed(planter, "new", against="old").changes
    assert (change.against, change.tasks, change.before, change.after) == ("old", 4, 0.5, 0.5)
    assert {one.label: one.contribution for one in change.by_label} == {
        "behaviour: no_answer": pytest.approx(-0.25),
        "knowledge_gap: never_right": pytest.approx(0.25),
    }
    assert {(flip.task_id, flip.before, flip.after, flip.label) for flip in change.flips} == {
        ("q1", 1.0, 0.0, "behaviour: no_answer"),
        ("q2", 0.0, 1.0, "knowledge_gap: never_right"),
    }


def test_against_a_run_of_other_tasks_it_says_that_nothing_can_be_said(planter: Planter) -> None:
    planter.run("old", [[Sample(failed=FailureKind.MODEL_ERROR)]])
    report = diagnosed(planter, planter.run("new", [[answering("A")]]), against="old")
    assert (report.against, report.changes) == ("old", [])
    assert headline(report).endswith("; it shares no scored task with run old, so nothing is said about a change")


@pytest.mark.parametrize(
    ("cited", "locator", "shown", "holds"),
    [
        ("r-0", "rollout/stop_reason", "finished", True),
        ("r-0", "rollout/stop_reason", "max_turns", False),
        ("r-9", "rollout/stop_reason", "finished", False),
        ("r-9", "verdict/extracted_answer", None, False),
        ("r-0", "verdict/passed", "true", True),
        ("r-0", "turns/0/tool_calls/0/status", "ok", True),
        ("r-0", "turns/0/tool_calls/1/status", "ok", False),
        ("r-0", "turns/0/tool_calls/0/arguments", '{"at"', True),
        ("r-0", "calls/1/output", 'She said "no"\nand left', True),
        ("r-0", "calls/0/output", 'She said "no"\nand left', False),
        ("r-0", "response/text", "The answer is (A)", True),
        ("r-0", "response/text", "The answer is (B)", False),
        ("r-0", "nowhere/1", "finished", False),
    ],
)
def test_a_citation_holds_only_if_it_exists_and_shows_what_is_claimed(
    planter: Planter, cited: str, locator: str, shown: str | None, holds: bool
) -> None:
    said = 'She said "no"\nand left. The answer is (A).'
    planter.run("r", [[Sample([Said(tools=[tool()]), Said(said)])]])
    with facts(planter.store, "r") as connection:
        connection.execute(
            "create table facts.citations (rollout_id varchar, cause varchar, rank bigint, cited varchar, locator varchar, shown varchar)"
        )
        connection.execute("insert into facts.citations values ('r-0', 'some', 1, ?, ?, ?)", [cited, locator, shown])
        check_citations(connection, "r", "first")
        assert connection.execute("select holds from facts.checked").fetchall() == [(holds,)]


def test_a_rule_that_cites_what_does_not_hold_says_nothing(planter: Planter, monkeypatch: pytest.MonkeyPatch) -> None:
    from gymflow.analysis.diagnose import labelling

    liar = labelling.Rule(
        cause="lie",
        about="Claims what is not there.",
        root_cause="data_artifact",
        intervention="data_repair",
        rank=1,
        query="select rollout_id, rollout_id as cited, 'rollout/stop_reason' as locator, 'max_turns' as shown from facts.rollouts",
    )
    monkeypatch.setattr(labelling, "rules", lambda: (liar, *rules()))
    run_id = planter.run("lied", [[answering(planter.wrong(0))]])
    report = diagnosed(planter, run_id)
    assert report.dropped_citations == 1
    assert labels_of(planter, run_id) == {"lied-0": "never_right"}


def test_every_rule_is_tested() -> None:
    tested = {*PLANTS, "never_right", "suspect_gold", "skipped_tool", "conflicting_rows"}
    assert {rule.cause for rule in rules()} == tested
    assert len({rule.rank for rule in rules()}) == len(rules())


def test_a_run_in_which_nobody_gives_an_answer_lacks_answers_and_not_knowledge(planter: Planter) -> None:
    run_id = planter.run("silent", [[PLANTS["no_answer"](planter, 0)] * 2, [PLANTS["no_answer"](planter, 1)] * 2])
    report = asyncio.run(diagnose(planter.store, run_id))
    assert {cause.cause: cause.rollouts for cause in report.causes} == {"no_answer": 4}
    assert report.funnels[0].biggest_drop == "answered"
    health = examine(planter.store, run_id)
    assert [check.affected for check in health.checks if check.check == "no_extracted_answer"] == [4]


def test_the_form_is_judged_by_the_parameters_of_the_verdict_set(planter: Planter) -> None:
    run_id = planter.run("r", [[answering(planter.gold(0))], [answering(planter.gold(1))]])
    change = Change(parameters={"mode": "strict_single_letter_boxed"})
    asyncio.run(rescore(planter.store, run_id, change, Registry()))
    report = asyncio.run(diagnose(planter.store, run_id))
    assert {cause.cause: cause.rollouts for cause in report.causes} == {"wrong_shape": 2}


def test_a_set_that_is_lenient_already_has_no_wider_twin(planter: Planter) -> None:
    run_id = planter.run("r", [[PLANTS["wrong_shape"](planter, 0)], [answering(planter.wrong(1))]])
    rescored = asyncio.run(rescore(planter.store, run_id, Change(parameters={"mode": "lenient"}), Registry()))
    reader = planter.store.run(run_id)
    assert manifest_as_judged(reader, "mcqa", rescored.verdict_set).verifier.parameters == {"mode": "lenient"}
    assert manifest_as_judged(reader, "mcqa", "first") == reader.document.environments["mcqa"].manifest
    assert "wrong_shape" not in {one.cause for one in asyncio.run(diagnose(planter.store, run_id)).causes}
