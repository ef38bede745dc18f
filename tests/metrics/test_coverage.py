"""Intervals keep what they promise, by seeded simulation: a 95 % interval covers the truth in 93 to 97 % of runs."""

from typing import Any

import numpy as np
import pytest

from gymflow.metrics.bootstrap import resampled_means
from gymflow.metrics.estimators import pass_at_k_of
from gymflow.metrics.intervals import mean_estimate

UNIT = (0.0, 1.0)
RUNS = 2000
SETTINGS = [(tasks, p) for tasks in (100, 400) for p in (0.3, 0.5, 0.7)]
pytestmark = [pytest.mark.slow, pytest.mark.parametrize(("tasks", "p"), SETTINGS)]


def chances(rng: np.random.Generator, runs: int, tasks: int, p: float, spread: float = 0.3) -> Any:
    """How likely a task is solved: Beta with mean p, so that tasks differ."""
    size = 1 / spread
    return rng.beta(p * size, (1 - p) * size, (runs, tasks))


def covered(values: Any, truth: float, clusters: Any = None, **options: Any) -> float:
    """Share of the runs (rows) whose interval holds the truth."""
    hits = 0
    for row in values:
        interval = mean_estimate(row, clusters, **options).interval
        assert interval is not None
        hits += interval.low <= truth <= interval.high
    return hits / len(values)


def test_of_single_rollouts(tasks: int, p: float) -> None:
    rng = np.random.default_rng([tasks, int(10 * p), 1])
    rewards = (rng.random((RUNS, tasks)) < p).astype(float)
    assert 0.93 <= covered(rewards, p, bounds=UNIT, independent=True) <= 0.97


def test_of_repeated_tasks(tasks: int, p: float) -> None:
    rng = np.random.default_rng([tasks, int(10 * p), 2])
    means = rng.binomial(4, chances(rng, RUNS, tasks, p)) / 4
    assert 0.93 <= covered(means, p, bounds=UNIT) <= 0.97


def test_of_graded_rewards_under_students_t(tasks: int, p: float) -> None:
    rng = np.random.default_rng([tasks, int(10 * p), 3])
    assert 0.93 <= covered(chances(rng, RUNS, tasks, p), p) <= 0.97


@pytest.mark.parametrize("bounds", [UNIT, None])
def test_of_clustered_tasks(tasks: int, p: float, bounds: tuple[float, float] | None) -> None:
    rng = np.random.default_rng([tasks, int(10 * p), 4])
    groups = 33 if tasks == 100 else 50
    clusters = np.arange(tasks) * groups // tasks
    shared = chances(rng, RUNS, groups, p, 0.2)[:, clusters]
    rewards = (rng.random((RUNS, tasks)) < shared).astype(float)
    assert 0.93 <= covered(rewards, p, clusters, bounds=bounds) <= 0.97
    ignored = covered(rewards, p, bounds=UNIT, independent=True)
    assert ignored < 0.93, "clusters that are left out make the interval too short, or the simulation shows nothing"


def test_of_pass_at_k(tasks: int, p: float) -> None:
    rng = np.random.default_rng([tasks, int(10 * p), 5])
    chance = chances(rng, RUNS, tasks, p)
    truth = float(1 - ((1 - chances(rng, 1, 2_000_000, p)) ** 4).mean())
    passed = rng.binomial(8, chance)
    values = np.stack([pass_at_k_of(np.full(tasks, 8), row, 4) for row in passed])
    # At p = 0.7 the truth is 0.95: most tasks are at the top, and no interval of 100 such values is exact.
    assert (0.92 if truth > 0.9 else 0.93) <= covered(values, truth, bounds=UNIT) <= 0.97


def test_of_the_bootstrap(tasks: int, p: float) -> None:
    rng = np.random.default_rng([tasks, int(10 * p), 6])
    means = rng.binomial(4, chances(rng, RUNS, tasks, p)) / 4
    hits = 0
    for row in means:
        low, high = np.quantile(resampled_means(row, np.ones(tasks), rng, 1000), [0.025, 0.975])
        hits += low <= p <= high
    assert 0.93 <= hits / len(means) <= 0.97
