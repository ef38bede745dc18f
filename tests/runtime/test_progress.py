"""The reward shown while a run works is that of the scorecard: a mean over tasks, with their spread as its error."""

import math
import random
import statistics

import pytest

from gymflow.runtime.progress import TaskMeans


def test_the_interval_is_that_of_task_means():
    """Repeats of a task are not independent: eight copies of each of ten tasks say as much as ten rollouts."""
    source = random.Random(3)
    rewards = {f"t{task}": [float(task % 3 == 0)] * 8 for task in range(10)}
    means = TaskMeans()
    for task, reward in source.sample([(task, one) for task, many in rewards.items() for one in many], 80):
        means.add(task, reward)
    mean, half = means.estimate()
    of_tasks = [statistics.fmean(many) for many in rewards.values()]
    assert mean == pytest.approx(statistics.fmean(of_tasks))
    assert half == pytest.approx(1.96 * statistics.stdev(of_tasks) / math.sqrt(10))


def test_what_a_run_holds_already_comes_in_one_piece_per_task():
    means, earlier = TaskMeans(), TaskMeans()
    for reward in (1.0, 0.0, 1.0):
        means.add("a", reward)
    earlier.add("a", 2.0, rollouts=3)
    assert means.estimate() == pytest.approx(earlier.estimate())


def test_one_task_has_no_spread_and_none_no_mean():
    means = TaskMeans()
    assert means.estimate() is None
    means.add("a", 0.25)
    assert means.estimate() == (0.25, math.inf)
