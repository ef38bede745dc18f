"""Paired comparisons: reported values, other libraries' values, and levels that hold."""

from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from gymflow.metrics.intervals import ClusteredError, clustered_error
from gymflow.metrics.paired import correlation, holm, mcnemar, paired, power, sign_flip_p, unpaired_error

Faults = dict[str, dict[str, Any]]


def test_st_paired(faults: Faults) -> None:
    case = faults["st-paired"]
    a, b = (np.array(case["input"][name], float) for name in ("a", "b"))
    expected = case["expected"]
    found = paired(a - b, width=1.0)
    assert found.difference == pytest.approx(expected["diff"])
    assert found.standard_error == pytest.approx(expected["se_paired"], abs=1e-10)
    assert found.difference / found.standard_error == pytest.approx(expected["t"], abs=1e-6)
    assert found.p == pytest.approx(expected["p_two_sided_t9"], abs=1e-6)
    assert unpaired_error(a, b) == pytest.approx(expected["unpaired_se"], abs=1e-10)
    gained, lost, p = mcnemar(b > 0, a > 0)
    assert ([gained, lost], p) == (expected["discordant"], pytest.approx(expected["mcnemar_exact_p"]))


def test_st_paired_all_equal(faults: Faults) -> None:
    given = faults["st-paired-all-equal"]["input"]
    change = np.array(given["a"], float) - np.array(given["b"])
    found = paired(change, width=1.0)
    assert (found.difference, found.standard_error, found.p) == (0.0, 0.0, 1.0)
    assert found.interval is not None and found.interval.low == -found.interval.high < 0
    assert sign_flip_p(change) == (1.0, True)
    assert mcnemar(change > 0, change > 0) == (0, 0, 1.0)


def test_differences_that_are_all_the_same_are_no_certainty() -> None:
    found = paired(np.ones(3), width=1.0)
    assert found.p == 0.25 == sign_flip_p(np.ones(3))[0]
    assert found.interval is not None and found.interval.low < found.interval.high == 1.0
    assert paired(np.ones(3)).interval is None


@pytest.mark.parametrize("counts", [(3, 0), (10, 4), (60, 41), (0, 0), (500, 400)])
def test_mcnemar_is_statsmodels(counts: tuple[int, int]) -> None:
    gained, lost = counts
    base = np.array([False] * gained + [True] * lost + [True, False])
    candidate = np.array([True] * gained + [False] * lost + [True, False])
    expected = reference_mcnemar([[1, lost], [gained, 1]], exact=True).pvalue
    assert mcnemar(base, candidate) == (gained, lost, pytest.approx(expected, abs=1e-9))


def test_the_exact_permutation_test_is_scipys() -> None:
    change = np.random.default_rng(1).normal(0.4, 1, 12)
    expected = stats.permutation_test((change,), lambda x, axis: x.mean(axis=axis), permutation_type="samples")
    assert sign_flip_p(change) == (pytest.approx(expected.pvalue, abs=1e-9), True)


@pytest.mark.parametrize("distinct", [True, False])
def test_sampled_permutations_agree_with_the_t_test(distinct: bool) -> None:
    rng = np.random.default_rng(2)
    change = rng.normal(0.08, 1, 600) if distinct else rng.integers(-4, 5, 600) / 8 + 0.0
    p, exhaustive = sign_flip_p(change, seed=3)
    assert not exhaustive
    assert p == pytest.approx(paired(change).p, abs=0.02)
    assert sign_flip_p(change, seed=3)[0] == p


def test_whole_clusters_are_exchanged() -> None:
    clusters = np.arange(40) // 10
    p, exhaustive = sign_flip_p(np.ones(40), clusters)
    assert (p, exhaustive) == (2 / 16, True)


def test_holm_is_statsmodels_and_leaves_undefined_ones_out() -> None:
    p_values = [0.01, 0.04, 0.03, 0.005, 0.9]
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
    assert holm([0.02, None, 0.01]) == [pytest.approx(0.02), None, pytest.approx(0.02)]


@pytest.mark.parametrize(("repeats", "tasks"), [(1, 3876), (4, 1696)])
def test_the_power_of_a_published_example(repeats: int, tasks: int) -> None:
    """Miller 2024, section 5: w^2 = 1/9, s^2 = 1/6 on both sides, an effect of 3 points."""
    within = 2 / 6
    variance = 1 / 9 + within / repeats
    found = power(ClusteredError(sqrt(variance / 1000), 1000), 1000, 0.03, (within / repeats, within))
    assert found.tasks == tasks
    enough = power(ClusteredError(sqrt(variance / tasks), tasks), tasks, 0.03, (within / repeats, within))
    assert enough.detectable == pytest.approx(0.03, abs=1e-5)
    assert enough.repeats == repeats


def test_no_number_of_repeats_helps_where_the_tasks_differ_too_much() -> None:
    found = power(ClusteredError(0.05, 100), 100, 0.03, (0.001, 0.002))
    assert found.repeats is None and found.tasks is not None and found.tasks > 100
    assert power(ClusteredError(None, 1), 1, 0.03, (None, None)).tasks is None


def test_differences_without_spread_plan_nothing() -> None:
    found = power(ClusteredError(0.0, 100), 100, 0.03, (0.0, 0.0))
    assert (found.detectable, found.tasks, found.repeats) == (None, None, None)


def test_correlation_of_a_constant_is_undefined() -> None:
    assert correlation(np.ones(4), np.arange(4.0)) is None
    assert correlation(np.arange(4.0), 2 * np.arange(4.0)) == pytest.approx(1.0)
    assert unpaired_error(np.ones(1), np.ones(1)) is None


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [100, 400])
@pytest.mark.parametrize("p", [0.3, 0.5, 0.7])
def test_exact_tests_keep_their_level_and_intervals_cover(tasks: int, p: float) -> None:
    """Under no difference: at most 5 % of exact tests reject, and 93 to 97 % of the intervals hold 0."""
    rng = np.random.default_rng([tasks, int(10 * p)])
    runs, groups = 600, 33 if tasks == 100 else 50
    clusters = np.arange(tasks) * groups // tasks
    rejected = dict.fromkeys(("mcnemar", "permutation", "clustered"), 0)
    covered = dict.fromkeys(("paired", "clustered"), 0)
    for _ in range(runs):
        chance = rng.beta(p * 3, (1 - p) * 3, tasks)
        base, candidate = rng.random((2, tasks)) < chance
        rejected["mcnemar"] += mcnemar(base, candidate)[2] <= 0.05
        before, after = rng.binomial(4, np.stack([chance, chance])) / 4
        change = after - before
        rejected["permutation"] += sign_flip_p(change, seed=int(rng.integers(1 << 30)))[0] <= 0.05
        interval = paired(change, width=1.0).interval
        covered["paired"] += interval is not None and interval.low <= 0 <= interval.high
        # A cluster sways both sides, each in its own way: differences within it go together.
        swayed = change + rng.normal(0, 0.1, groups)[clusters]
        interval = paired(swayed, clusters).interval
        covered["clustered"] += interval is not None and interval.low <= 0 <= interval.high
        rejected["clustered"] += sign_flip_p(swayed, clusters, seed=int(rng.integers(1 << 30)))[0] <= 0.05
    noise = 1.65 * sqrt(0.05 * 0.95 / runs)  # the level is exact; the simulation of it is not
    assert all(count / runs <= 0.05 + noise for count in rejected.values()), rejected
    assert all(0.93 <= count / runs <= 0.97 for count in covered.values()), covered
    assert clustered_error(swayed, clusters).groups == groups
