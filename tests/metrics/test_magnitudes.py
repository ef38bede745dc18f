"""Rewards as large as a number can be: every figure is right, or null with a reason, and nothing warns or fails."""

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymflow.analysis.compare import compare, parse_gate
from gymflow.analysis.comparison_sheets import comparison_sheets
from gymflow.analysis.profiling import profile_run
from gymflow.analysis.sheets import number, profile_sheets
from gymflow.metrics.bootstrap import bootstrap_interval
from gymflow.metrics.intervals import clustered_error, mean_estimate
from gymflow.metrics.magnitudes import TOO_LARGE, mean_of
from gymflow.metrics.paired import correlation, paired_difference, power, sign_flip_p, unpaired_error
from gymflow.metrics.profile import profile
from gymflow.metrics.quality import Options
from gymflow.metrics.scorecard import scorecard
from gymflow.metrics.summaries import run_summaries, task_lines
from gymflow.runtime.progress import TaskMeans
from gymflow.store import Store, connect
from tests.support.synthetic import write_run

MOST = 1.7e308
LARGE = 2.0**1000
VALUES = st.lists(st.floats(-4.0, 4.0, allow_subnormal=False), min_size=2, max_size=12).map(np.array)


@pytest.fixture(autouse=True)
def _nothing_warns() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@given(VALUES, st.booleans())
def test_errors_and_intervals_grow_with_the_values(values: Any, clustered: bool) -> None:
    clusters = np.arange(len(values)) // 2 if clustered else None
    small, large = clustered_error(values, clusters), clustered_error(values * LARGE, clusters)
    assert large.groups == small.groups
    assert (large.standard_error is None) == (small.standard_error is None)
    assert (large.standard_error or 0.0) == pytest.approx(
        (small.standard_error or 0.0) * LARGE, rel=1e-9, abs=1e-12 * LARGE
    )
    assert mean_of(values * LARGE) == pytest.approx(float(values.mean()) * LARGE, rel=1e-12, abs=1e-12 * LARGE)
    near, far = bootstrap_interval(values, clusters), bootstrap_interval(values * LARGE, clusters)
    assert (near is None) == (far is None)
    if near is not None and far is not None:
        assert far.low == pytest.approx(near.low * LARGE, rel=1e-9, abs=1e-12 * LARGE)


@given(st.lists(st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 1.0])] * 2), min_size=2, max_size=12))
def test_differences_are_tested_alike_at_every_magnitude(pairs: list[tuple[float, float]]) -> None:
    base, candidate = np.array(pairs).T
    small, large = paired_difference(base, candidate), paired_difference(base * LARGE, candidate * LARGE)
    assert large.p == pytest.approx(small.p) and large.reason is None
    assert large.difference == pytest.approx(float((candidate - base).mean()) * LARGE)
    assert sign_flip_p(base * LARGE) == sign_flip_p(base)
    assert correlation(base * LARGE, candidate) == pytest.approx(correlation(base, candidate))
    assert unpaired_error(base * LARGE, candidate * LARGE) == pytest.approx(
        (unpaired_error(base, candidate) or 0.0) * LARGE
    )


def test_what_no_number_can_hold_is_null_with_a_reason() -> None:
    found = paired_difference(np.array([-MOST, -MOST]), np.array([MOST, MOST]))
    assert (found.difference, found.interval, found.reason) == (None, None, TOO_LARGE)
    wide = mean_estimate(np.array([-MOST, MOST]))
    assert (wide.value, wide.interval, wide.reason) == (0.0, None, TOO_LARGE)
    assert wide.standard_error == pytest.approx(MOST)


def test_rewards_outside_the_declared_range_are_not_confined_to_it() -> None:
    found = paired_difference(np.array([0.0, 1.0, 0.0]), np.array([5.0, 1.0, 0.0]), width=1.0)
    assert found.interval is not None and (found.interval.method, found.interval.high > 1.0) == ("t", True)


@pytest.mark.parametrize(("error", "effect"), [(1e200, 0.02), (1.0, 1e-200), (1e150, 1e200), (1.0, 1e-12)])
def test_a_size_that_nobody_could_run_is_no_number(error: float, effect: float) -> None:
    found = power(clustered_error(np.array([-error, error])), 2, effect, (0.5, 1.0))
    assert found.tasks is None or 2 <= found.tasks <= 1e15
    assert found.repeats is None or 1 <= found.repeats <= 1e15


@pytest.fixture
def place(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    write_run(store, "base", [[MOST, MOST], [-MOST, MOST], [1, 0], [0, 0]], cost_usd=0.1)
    write_run(store, "other", [[-MOST, -MOST], [MOST, MOST], [1, 1], [0, 1]], cost_usd=0.1)
    write_run(store, "squares", [[1e160, 0], [0, 0], [1, 0], [0, 0]], cost_usd=0.1)
    return store


def test_profile_scorecard_and_lists_of_such_a_run(place: Store) -> None:
    [line] = profile(place, "base").lines
    assert line.score.value == pytest.approx(MOST / 4)
    assert line.score.standard_error == pytest.approx(MOST / 4)
    assert line.lowest == line.highest == pytest.approx(MOST / 4)
    assert (line.variance.between_tasks, line.variance.within_task, line.variance.reason) == (None, None, TOO_LARGE)
    [card] = scorecard(place, "base").lines
    assert card.score == line.score.value and card.standard_error == line.score.standard_error
    assert [task.reward for task in task_lines(place, "base", "first")] == [0.0, 0.0, 0.5, MOST]
    [summary] = [run for run in run_summaries(place) if run.run_id == "base"]
    assert (summary.scores[0].score, summary.scores[0].standard_error) == (card.score, None)
    with connect(place.root) as connection:
        rows = connection.sql(
            "SELECT reward, variance FROM task_scores WHERE run_id = 'base' ORDER BY task_id"
        ).fetchall()
    assert rows == [(MOST, 0.0), (0.0, None), (0.5, 0.5), (0.0, 0.0)]


def test_squares_alone_may_be_too_large(place: Store) -> None:
    [line] = profile(place, "squares").lines
    assert line.score.value == pytest.approx(1.25e159) and line.variance.reason == TOO_LARGE
    assert line.score_bootstrap is not None and line.score_bootstrap.high <= 5e159


@pytest.mark.parametrize(
    ("base", "candidate"), [("base", "other"), ("other", "base"), ("base", "squares"), ("base", "base")]
)
def test_compare_of_such_runs(place: Store, base: str, candidate: str) -> None:
    gates = [parse_gate(text) for text in ("score >= -1%", "absolute score >= 10%", "score.low >= -0.03")]
    report = compare(place, base, [candidate], gates=gates)
    [line] = report.candidates
    assert line.power.tasks_needed is None and line.power.reason
    assert line.test.p is not None and 0.0 < line.test.p <= 1.0
    assert "inf" not in report.model_dump_json().casefold() and "nan" not in report.model_dump_json().casefold()
    assert all(len(cell) < 120 for sheet in comparison_sheets(report) for row in sheet.rows for cell in row)


def test_the_reports_and_plots_of_such_a_run_are_short(place: Store) -> None:
    report, _ = profile_run(place, "base", None, Options(), plots=True)
    cells = [cell for sheet in profile_sheets(report) for row in sheet.rows for cell in row]
    assert max(map(len, cells)) < 120 and "4.25e+307" in " ".join(cells)
    assert (number(0.25), number(-1.5e9), number(1e9 - 1, 1, sign="+")) == ("0.250", "-1.5e+09", "+999999999.0")


def test_a_run_under_way_counts_such_rewards() -> None:
    means = TaskMeans()
    means.add("a", 1e200)
    means.add("b", 0.0)
    assert means.estimate() == (5e199, math.inf)
    means.add("c", MOST)
    means.add("d", MOST)
    assert means.estimate() is None
