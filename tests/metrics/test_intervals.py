"""Standard errors and intervals: against statsmodels, and where they must not collapse or leave their range."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from gymflow.metrics.bootstrap import bootstrap_interval
from gymflow.metrics.intervals import clustered_error, mean_estimate, t_interval, wilson

UNIT = (0.0, 1.0)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_statsmodels(counts: tuple[int, int]) -> None:
    assert wilson(*counts) == pytest.approx(proportion_confint(*counts, method="wilson"), abs=1e-9)


def test_clustered_errors_are_statsmodels() -> None:
    rng = np.random.default_rng(1)
    clusters = rng.integers(0, 25, 200)
    values = rng.random(200) + rng.random(25)[clusters]
    fit = sm.OLS(values, np.ones(200)).fit(cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False})
    found = clustered_error(values, clusters)
    assert found.groups == 25
    assert found.standard_error == pytest.approx(fit.bse[0] * np.sqrt(25 / 24))


def test_without_clusters_the_interval_is_students() -> None:
    values = np.array([0.2, 0.5, 0.9, 0.4])
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    interval = t_interval(float(values.mean()), clustered_error(values))
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("independent", [True, False])
@pytest.mark.parametrize("clusters", [None, np.arange(12) // 3])
def test_all_or_nothing_still_has_an_interval(value: float, independent: bool, clusters: np.ndarray | None) -> None:
    found = mean_estimate(np.full(12, value), clusters, bounds=UNIT, independent=independent)
    assert found.interval is not None and found.value == value
    assert 0.0 <= found.interval.low < found.interval.high <= 1.0
    assert value in (found.interval.low, found.interval.high)


def test_single_rollouts_have_wilsons_own_interval() -> None:
    values = np.array([1.0] * 8 + [0.0] * 2)
    found = mean_estimate(values, bounds=UNIT, independent=True).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.490162, 0.943318), abs=1e-6)


def test_rewards_of_another_range_have_their_interval_in_it() -> None:
    found = mean_estimate(np.array([-1.0, 1.0, 1.0, -1.0, 1.0]), bounds=(-1.0, 1.0), independent=True).interval
    low, high = wilson(3, 5)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((2 * low - 1, 2 * high - 1))


def test_rewards_outside_the_declared_range_fall_back_to_students_t() -> None:
    found = mean_estimate(np.array([0.0, 1.0, 3.0]), bounds=UNIT)
    assert found.interval is not None and found.interval.method == "t"


def test_large_samples_make_both_intervals_the_same() -> None:
    values = np.random.default_rng(2).beta(2, 2, 20_000)
    bounded, plain = mean_estimate(values, bounds=UNIT).interval, mean_estimate(values).interval
    assert bounded is not None and plain is not None
    assert (bounded.low, bounded.high) == pytest.approx((plain.low, plain.high), abs=1e-5)


def test_one_task_and_one_cluster_have_no_error_and_say_so() -> None:
    one = mean_estimate(np.array([1.0]), bounds=UNIT)
    assert (one.value, one.standard_error, one.interval) == (1.0, None, None)
    assert one.reason == "a single task has no standard error"
    cluster = mean_estimate(np.array([1.0, 0.0]), np.array([7, 7]), bounds=UNIT)
    assert (cluster.standard_error, cluster.interval) == (None, None)
    assert cluster.reason == "a single cluster has no standard error"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (mean_estimate(np.array(some), bounds=UNIT) for some in (values, shuffled))
    assert first.interval is not None and second.interval is not None
    assert (first.interval.low, first.interval.high) == pytest.approx(
        (second.interval.low, second.interval.high), abs=1e-6
    )


@pytest.mark.parametrize("clusters", [None, np.arange(3000) // 10])
@pytest.mark.parametrize("distinct", [True, False])
def test_the_bootstrap_agrees_with_theory(clusters: np.ndarray | None, distinct: bool) -> None:
    rng = np.random.default_rng(3)
    values = rng.random(3000) if distinct else rng.integers(0, 5, 3000) / 4
    expected = t_interval(float(values.mean()), clustered_error(values, clusters))
    found = bootstrap_interval(values, clusters, seed=7)
    assert found is not None and expected is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=2e-3)
    assert found == bootstrap_interval(values, clusters, seed=7)
    assert found != bootstrap_interval(values, clusters, seed=8)


def test_equal_values_of_an_unknown_range_are_no_certainty() -> None:
    found = mean_estimate(np.full(5, 0.3))
    assert (found.value, found.standard_error, found.interval) == (0.3, 0.0, None)
    assert found.reason == "all tasks came to the same, in an unknown range: no spread to tell an interval from"
    assert bootstrap_interval(np.full(5, 0.3), np.arange(5)) is None


def test_the_bootstrap_of_one_group_is_undefined() -> None:
    assert bootstrap_interval(np.array([1.0])) is None
    assert bootstrap_interval(np.array([1.0, 0.0]), np.array([1, 1])) is None
