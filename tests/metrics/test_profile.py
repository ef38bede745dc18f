"""Profiles of stored runs: denominators, slices, bands, components and costs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gymflow.analysis.profiling import profile_run
from gymflow.analysis.sheets import profile_sheets
from gymflow.contracts.profile import ProfileLine
from gymflow.errors import InputError
from gymflow.metrics.profile import profile
from gymflow.metrics.quality import Options
from gymflow.metrics.scorecard import scorecard
from gymflow.metrics.task_table import open_task_tables
from gymflow.store import Store, connect
from tests.support.synthetic import write_run

NAN, INF = math.nan, math.inf
REWARDS = [[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [NAN, NAN, INF, INF], [1, 1, NAN, INF]]
TAGS = [["easy"], ["easy", "long"], ["hard"], ["hard"], [], ["easy"]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    write_run(store, "r", REWARDS, tags=TAGS, clusters=["p", "p", "s", "s", None, None], calls=True, cost_usd=0.5)
    return store


@pytest.fixture(scope="module")
def line(place: Store) -> ProfileLine:
    [found] = profile(place, "r", options=Options(by=["tag,cluster", "split"], k=[8])).lines
    return found


def values(metric: list[Any]) -> dict[int, float | None]:
    return {one.k: one.estimate.value for one in metric}


def test_the_score_is_a_mean_of_task_means_and_coverage_stands_beside_it(line: ProfileLine) -> None:
    assert line.score.value == pytest.approx(np.mean([1, 0.5, 0.25, 0, 1]))
    assert (line.tasks, line.unscored_tasks, line.score.tasks) == (6, 1, 5)
    assert (line.rollouts, line.scored, line.failed, line.missing, line.unverified) == (24, 18, 3, 3, 0)
    assert line.coverage == 18 / 24
    assert line.lowest == pytest.approx(np.mean([1, 0.5, 0.25, 0, 0, 0.5]))
    assert line.highest == pytest.approx(np.mean([1, 0.5, 0.25, 0, 1, 1]))


def test_pass_at_k_is_over_tasks_with_k_scored_rollouts_and_says_how_many(line: ProfileLine) -> None:
    assert values(line.pass_at) == {
        1: pytest.approx(0.55),
        2: pytest.approx(np.mean([1, 5 / 6, 0.5, 0, 1])),
        4: pytest.approx(np.mean([1, 1, 1, 0])),
        8: None,
    }
    assert [one.estimate.tasks for one in line.pass_at] == [5, 5, 4, 0]
    assert values(line.pass_hat)[2] == pytest.approx(np.mean([1, 1 / 6, 0, 0, 1]))
    assert line.pass_at[-1].estimate.reason == "no task has 8 scored rollouts (the most is 4)"


def test_clusters_are_the_groups_of_the_error(line: ProfileLine) -> None:
    assert line.score.groups == 3  # p, s, and the task without a cluster; the unscored one is in no mean
    assert line.error_by_task == pytest.approx(np.std([1, 0.5, 0.25, 0, 1], ddof=1) / np.sqrt(5))
    assert line.score.standard_error != line.error_by_task
    assert line.average_of[0].estimate.standard_error is None
    assert "clustered" in (line.average_of[0].estimate.reason or "")


def test_slices_have_scores_of_their_own(line: ProfileLine) -> None:
    found = {(cut.by, cut.value): (cut.tasks, cut.score.value) for cut in line.slices}
    assert found[("tag", "easy")] == (3, pytest.approx(np.mean([1, 0.5, 1])))
    assert found[("tag", "hard")] == (2, pytest.approx(0.125))
    assert found[("tag", "long")] == (1, 0.5)
    assert found[("cluster", "p")] == (2, 0.75)
    assert found[("split", "test")] == (6, pytest.approx(0.55))


def test_bands_say_what_is_useful_for_training(line: ProfileLine) -> None:
    assert {band.name: band.tasks for band in line.bands} == {
        "never": 1,
        "hard": 0,
        "useful": 2,
        "easy": 0,
        "always": 2,
    }
    assert sum(band.share or 0 for band in line.bands) == pytest.approx(1.0)


def test_costs_count_failed_rollouts_too(line: ProfileLine) -> None:
    costs = line.costs
    assert (costs.rollouts, costs.model_calls, costs.cost_usd) == (21, 21, 10.5)
    assert costs.cost_per_solved_usd == pytest.approx(0.5 / 0.55)
    assert costs.tokens["reasoning"].total is None and costs.tokens["prompt"].reported == 21
    assert costs.wall_s.count == 21 and costs.first_token_s.count == 0
    assert costs.model_latency_s.p50 == pytest.approx(costs.wall_s.p50)


def test_majority_is_left_out_where_nothing_is_extracted(line: ProfileLine) -> None:
    assert (line.majority_at, line.unanswered) == ([], 1.0)


@pytest.mark.parametrize("verdict_set", ["first", "another", None])
def test_what_is_counted_is_what_the_view_of_outcomes_says(place: Store, verdict_set: str | None) -> None:
    columns = "environment, agent, task_index, outcome, reward, passed, extracted_answer, components"
    view = f"SELECT {columns} FROM outcomes WHERE run_id = 'r' AND verdict_set = $verdict_set"
    with connect(place.root, runs=["r"]) as connection:
        open_task_tables(connection, "r", verdict_set)
        planned = connection.sql(f"SELECT {columns} FROM _planned").fetchall()
        expected = connection.sql(view, params={"verdict_set": verdict_set}).fetchall()
    if verdict_set is None:  # as if it had never been scored
        assert {row[3] for row in planned} == {"unverified", "failed", "missing"} and len(planned) == 24
        return
    assert sorted(planned, key=str) == sorted(expected, key=str) and len(planned) == (
        24 if verdict_set == "first" else 0
    )


def test_an_unanswered_rollout_is_a_vote_of_its_own_only_where_it_passed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    answers = [answer for _ in range(5) for answer in (None, "A")]  # repeat by repeat: the first task is never answered
    write_run(store, "r", [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], answers=answers)
    [line] = profile(store, "r").lines
    assert values(line.majority_at)[5] == 1.0 and values(line.majority_at)[1] == pytest.approx(0.8)


def test_components_have_means_over_the_tasks_that_have_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    components = [
        json.dumps(one) for one in ({"form": 1.0, "right": 0.0}, {"form": 0.0}, {"form": 1.0, "right": 1.0}, {})
    ]
    write_run(store, "r", [[0, 1], [0, 1]], components=components)
    [line] = profile(store, "r").lines
    assert {name: (one.value, one.tasks) for name, one in line.components.items()} == {
        "form": (pytest.approx(0.5), 2),
        "right": (0.5, 1),
    }


def test_scorecard_and_profile_say_the_same(place: Store, line: ProfileLine) -> None:
    [card] = scorecard(place, "r", k=(2,)).lines
    assert (card.score, card.standard_error, card.interval) == (
        line.score.value,
        line.score.standard_error,
        line.score.interval,
    )
    assert card.pass_at == {k: value for k, value in values(line.pass_at).items() if k in (1, 2)}
    assert (card.always, card.sometimes, card.never) == (2, 2, 1)


def test_all_passed_and_none_passed_have_an_interval_in_the_scorecard(tmp_path: Path) -> None:
    for reward in (0.0, 1.0):
        store = Store(tmp_path / str(reward))
        write_run(store, "r", np.full((10, 2), reward))
        [card] = scorecard(store, "r").lines
        assert card.interval is not None and card.interval.low < card.interval.high


def test_what_is_undefined_is_null_and_the_tables_say_why(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "equal", np.zeros((6, 1)))
    write_run(store, "single", [[1.0, 0.0]])
    write_run(store, "failed", np.full((3, 2), NAN))
    reasons = {}
    for run_id in ("equal", "single", "failed"):
        report = profile(store, run_id)
        [line] = report.lines
        assert (line.score_t, line.score_bootstrap) == (None, None)
        *_, last = profile_sheets(report)
        assert last.columns == ("why", "estimates")
        reasons[run_id] = dict(last.rows)
    assert reasons["single"]["a single task has no standard error"].startswith(
        "score, pass_rate, pass_at(1), pass_at(2)"
    )
    assert "score, pass_rate" in reasons["failed"]["there is no scored task"]
    assert reasons["equal"]["no price is known; nothing is solved"] == "cost of a solved task"


def test_a_slice_by_a_name_that_no_task_has_is_refused(place: Store) -> None:
    with pytest.raises(InputError, match="--by tags: no task of r has it; did you mean tag"):
        profile(place, "r", options=Options(by=["tags"]))


def test_the_bootstrap_is_the_same_for_the_same_seed(place: Store) -> None:
    seeds = [profile(place, "r", options=Options(seed=seed)) for seed in (1, 1, 2)]
    intervals = [report.lines[0].score_bootstrap for report in seeds]
    assert intervals[0] == intervals[1] and [report.seed for report in seeds] == [1, 1, 2]


def test_every_estimate_is_a_row_of_the_parquet_report(place: Store) -> None:
    report, _ = profile_run(place, "r", None, Options(by=["tag"]))
    folder = place.layout.run("r").reports
    rows = pq.read_table(folder / f"profile-{report.verdict_set}.parquet").to_pylist()
    found = {(row["metric"], row["k"], row["slice"]): row for row in rows}
    assert found[("score", None, None)]["value"] == report.lines[0].score.value
    assert found[("pass_at", 2, None)]["high"] == report.lines[0].pass_at[1].estimate.interval.high  # type: ignore[union-attr]
    assert found[("score", None, "tag=easy")]["tasks"] == 3
    tasks = pq.read_table(folder / f"profile-{report.verdict_set}-tasks.parquet")
    assert tasks["scored"].to_pylist() == [4, 4, 4, 4, 0, 2]
