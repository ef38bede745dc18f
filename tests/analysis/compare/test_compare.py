"""Comparisons of stored runs: what is paired with what, what differs, and what a reader is warned of."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gymflow.analysis.compare import Settings, compare, headline, parse_gate
from gymflow.analysis.comparison_sheets import comparison_sheets, headlines, warnings
from gymflow.contracts.comparison import CandidateLine
from gymflow.errors import InputError
from gymflow.store import Store

Stored = Callable[..., str]
A = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1]
B = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0]


def column(values: list[float]) -> Any:
    """One rollout a task."""
    return np.array(values, float)[:, None]


def only(place: Store, **options: Any) -> CandidateLine:
    [line] = compare(place, "b", ["a"], **options).candidates
    return line


def test_st_paired_from_the_store(place: Store, stored: Stored, faults: dict[str, dict[str, Any]]) -> None:
    given, expected = faults["st-paired"]["input"], faults["st-paired"]["expected"]
    stored("b", column(given["b"]))
    stored("a", column(given["a"]))
    line = only(place)
    assert line.score.difference == pytest.approx(expected["diff"])
    assert line.score.standard_error == pytest.approx(expected["se_paired"], abs=1e-10)
    assert line.score.p == pytest.approx(expected["p_two_sided_t9"], abs=1e-6)
    assert line.unpaired_error == pytest.approx(expected["unpaired_se"], abs=1e-10)
    assert (line.test.name, line.test.p) == ("mcnemar", pytest.approx(expected["mcnemar_exact_p"]))
    assert [line.test.gained, line.test.lost] == expected["discordant"]
    assert (line.flips.gained, line.flips.lost) == (3, 0)
    assert {flip.task_id for flip in line.flips.listed} == {"q1", "q6", "q9"}


def test_tasks_are_paired_by_what_the_agent_sees_never_by_position(place: Store, stored: Stored) -> None:
    order = np.random.default_rng(1).permutation(10)
    stored("b", column(B))
    keys = [f"{index:064d}".replace("0" * 63, "k" * 63) for index in range(10)]
    stored("straight", column(B), task_keys=keys)
    stored("shuffled", column([A[i] for i in order]), task_keys=[keys[i] for i in order])
    [line] = compare(place, "straight", ["shuffled"]).candidates
    assert line.score.difference == pytest.approx(0.3)
    assert (line.overlap.tasks, line.overlap.only_base, line.overlap.only_candidate) == (10, 0, 0)


def test_what_is_not_in_common_is_listed_and_left_out(place: Store, stored: Stored) -> None:
    stored("b", column([1, 0, 1, 0]), task_keys=["w", "x", "y", "z"])
    stored("a", column([0, 1, 1]), task_keys=["y", "z", "new"])
    overlap = only(place).overlap
    assert (overlap.tasks, overlap.scored, overlap.only_base, overlap.only_candidate) == (2, 2, 2, 1)
    assert (overlap.only_base_ids, overlap.only_candidate_ids) == (["q0", "q1"], ["q2"])
    assert only(place).score.difference == 0.0


def test_equal_rows_of_a_dataset_are_paired_one_by_one(place: Store, stored: Stored) -> None:
    stored("b", column([1, 0, 0]), task_keys=["same", "same", "other"])
    stored("a", column([1, 1, 0]), task_keys=["same", "same", "other"])
    line = only(place)
    assert (line.overlap.tasks, line.score.tasks) == (3, 3)
    assert line.score.base == pytest.approx(1 / 3) and line.score.candidate == pytest.approx(2 / 3)


def test_nothing_in_common_is_refused(place: Store, stored: Stored) -> None:
    stored("b", column([1]), task_keys=["x"])
    stored("a", column([1]), task_keys=["y"])
    with pytest.raises(InputError, match="no task in common"):
        only(place)


def test_other_gold_answers_are_warned_of(place: Store, stored: Stored) -> None:
    stored("b", column([1, 0]), row_digests=["r0", "r1"])
    stored("a", column([1, 0]), row_digests=["r0", "changed"])
    line = only(place)
    assert (line.overlap.other_row, line.overlap.other_row_ids) == (1, ["q1"])
    assert any("gold answer" in warning for warning in line.warnings)


def test_tasks_without_a_score_on_one_side_are_left_out_and_said(place: Store, stored: Stored) -> None:
    stored("b", column([1, 0, math.nan]))
    stored("a", column([1, 1, 1]))
    line = only(place)
    assert (line.overlap.tasks, line.overlap.scored, line.score.tasks) == (3, 2, 2)
    assert line.warnings == ["b: 1 tasks have no scored rollout and are left out"]


def test_shared_samples_are_counted_and_warned_of(place: Store, stored: Stored) -> None:
    stored("b", column(A))
    stored("a", column(A), sampled_in="b")
    line = only(place)
    assert line.overlap.shared_samples == 10
    assert any("same samples" in warning for warning in line.warnings)
    stored("apart", column(A))
    assert compare(place, "b", ["apart"]).candidates[0].overlap.shared_samples == 0


def test_what_varies_is_named_and_more_than_one_thing_explains_nothing(place: Store, stored: Stored) -> None:
    stored("b", column(A))
    stored("one", column(A), varied={"prompt": "other"})
    stored("two", column(A), varied={"prompt": "other", "model": "other"})
    stored("none", column(A))
    found = {line.run_id: line for line in compare(place, "b", ["one", "two", "none"]).candidates}
    assert [found[name].varies for name in ("one", "two", "none")] == [["prompt"], ["model", "prompt"], []]
    assert headline("", found["one"].varies, []) == "varies: prompt"
    assert headline("", found["two"].varies, []).endswith(": a release score, not an explanation")
    assert "nothing" in headline("", [], [])


def test_repeats_make_it_a_permutation_test_and_tell_the_repeats_needed(place: Store, stored: Stored) -> None:
    rng = np.random.default_rng(4)
    chance = rng.beta(2, 2, 200)[:, None]
    stored("b", rng.random((200, 4)) < chance)
    stored("a", rng.random((200, 4)) < chance)
    line = only(place, settings=Settings(effect=0.05))
    assert line.test.name == "permutation" and line.test.p is not None and line.test.p > 0.05
    power = line.power
    assert power.detectable is not None and power.repeats_needed is not None and power.tasks_needed is not None
    # Equal chances: all of the difference's variance is within the tasks, so that repeats and tasks do the same.
    assert power.repeats_needed == pytest.approx(4 * power.tasks_needed / 200, rel=0.25)


def test_clusters_widen_the_error_and_are_exchanged_whole(place: Store, stored: Stored) -> None:
    clusters = [f"passage {index // 5}" for index in range(40)]
    change = np.repeat([1, 0, 1, 1, 0, 1, 1, 0], 5).astype(float)
    stored("b", np.zeros((40, 1)), clusters=clusters)
    stored("a", change[:, None], clusters=clusters)
    line = only(place)
    assert line.score.groups == 8
    assert line.score.standard_error > 2 * line.score.paired_error  # type: ignore[operator]
    assert (line.test.name, line.test.p) == ("permutation", 2 / 32)


def test_several_candidates_are_adjusted_together(place: Store, stored: Stored) -> None:
    stored("b", column(B * 3))
    stored("a", column(A * 3))
    stored("same", column(B * 3))
    found = compare(place, "b", ["a", "same"]).candidates
    assert [line.test.p_holm for line in found] == [pytest.approx(2 * found[0].test.p), 1.0]  # type: ignore[operator]


def test_slices_and_costs_have_their_own_differences(place: Store, stored: Stored) -> None:
    tags = [["easy"]] * 5 + [["hard", "long"]] * 5
    stored("b", column(B), tags=tags, cost_usd=0.01)
    stored("a", column(A), tags=tags, cost_usd=0.03)
    line = only(place, by=["tag"])
    found = {(cut.by, cut.value): cut.score.difference for cut in line.slices}
    assert found[("tag", "easy")] == pytest.approx(0.2) and found[("tag", "hard")] == pytest.approx(0.4)
    assert line.costs["cost_usd"].difference == pytest.approx(0.02)
    assert line.costs["duration_s"].difference == 0.0
    with pytest.raises(InputError, match="did you mean tag"):
        only(place, by=["tags"])


def test_what_is_not_reported_is_null_with_a_reason(place: Store, stored: Stored) -> None:
    stored("b", column([1]))
    stored("a", column([0]))
    line = only(place)
    assert (line.costs["cost_usd"].difference, line.costs["cost_usd"].reason) == (None, "no task has it on both sides")
    assert (line.score.standard_error, line.score.interval) == (None, None)
    assert line.score.reason == "a single independent task has no standard error"
    assert "NaN" not in json.dumps(line.model_dump(mode="json"), allow_nan=False)
    assert all(sheet.rows for sheet in comparison_sheets(compare(place, "b", ["a"])))


def test_the_first_tables_are_the_scores_the_costs_of_several_and_the_gates(place: Store, stored: Stored) -> None:
    stored("b", column(B), cost_usd=0.01)
    stored("a", column(A), cost_usd=0.01)
    stored("shared", column(B), cost_usd=0.02, sampled_in="b", varied={"prompt": "p", "model": "m"})
    report = compare(place, "b", ["a", "shared"], gates=[parse_gate("score >= 0.2")])
    scores, costs, gates, *_ = comparison_sheets(report)
    assert scores.columns == ("run", "score", "difference [95 %]", "SE", "p (mcnemar)", "p (Holm)", "tasks")
    assert [row[:2] for row in scores.rows] == [("b (base)", "0.400"), ("a", "0.700"), ("shared", "0.400")]
    assert [row[-1] for row in costs.rows] == ["0.01000", "0.01000", "0.02000"]
    assert [row[3] for row in gates.rows] == ["holds", "FAILED"]
    assert headlines(report)[1] == "shared varies: model, prompt: a release score, not an explanation"
    assert warnings(report) == [
        "shared: 10 rollouts are the same samples on both sides: their difference is 0 by construction"
    ]


def test_the_report_lies_with_the_candidate(place: Store, stored: Stored) -> None:
    stored("b", column(B))
    stored("a", column(A))
    compare(place, "b", ["a"])
    folder = place.layout.run("a").reports
    assert json.loads((folder / "comparison-b.json").read_text())["candidates"][0]["score"]["tasks"] == 10
    table = pq.read_table(folder / "comparison-b.parquet")
    assert table["candidate_reward"].to_pylist() == A and table["base_reward"].to_pylist() == B


def test_an_unknown_agent_is_refused_with_those_there_are(place: Store, stored: Stored) -> None:
    stored("b", column(B))
    with pytest.raises(InputError, match="has no agent 'other'; there are: b:policy"):
        compare(place, "b", ["b:other"])


def test_any_verdict_set_that_both_runs_have_can_be_compared(place: Store, stored: Stored) -> None:
    stored("b", column(B))
    stored("a", column(A))
    line = only(place, verdict_set="fir")
    assert (line.verdict_set, line.score.difference) == ("first", pytest.approx(0.3))
    with pytest.raises(InputError, match="run b has no verdict set 'second'; there are: first"):
        only(place, verdict_set="second")


def test_candidates_are_told_apart_by_name_run_or_agent(place: Store, stored: Stored) -> None:
    for run_id in ("b", "a", "c"):
        stored(run_id, column(B))
    report = compare(place, "b", ["a", "c"])
    renamed = [
        line.model_copy(update={"name": name}) for line, name in zip(report.candidates, ("t=1", "b"), strict=True)
    ]
    named = report.model_copy(update={"candidates": renamed})
    assert [named.label(line) for line in named.candidates] == ["t=1", "c"]
    same = [line.model_copy(update={"run_id": "b", "agent": agent}) for line, agent in zip(renamed, "xy", strict=True)]
    own = report.model_copy(update={"candidates": same})
    assert [own.label(line) for line in own.candidates] == ["x", "y"]
    both = [line.model_copy(update={"run_id": "a", "name": "n"}) for line in same]
    assert [report.model_copy(update={"candidates": both}).label(line) for line in both] == ["n, x", "n, y"]


def test_a_run_of_one_agent_has_nothing_to_compare_with(place: Store, stored: Stored) -> None:
    stored("b", column(B))
    with pytest.raises(InputError, match="run b has a single agent: name the runs to compare with it"):
        compare(place, "b")


@pytest.mark.parametrize("effect", [float("inf"), float("nan"), 0.0, -0.1])
def test_an_effect_that_no_size_could_find_is_refused(effect: float) -> None:
    with pytest.raises(InputError, match="--effect"):
        Settings(effect=effect)


def test_equal_differences_plan_nothing_and_say_why(place: Store, stored: Stored) -> None:
    stored("b", np.zeros((5, 2)))
    stored("a", np.ones((5, 2)))
    power = compare(place, "b", ["a"]).candidates[0].power
    assert (power.detectable, power.tasks_needed, power.repeats_needed) == (None, None, None)
    assert power.reason == "every task differs by the same: no spread to plan with"
