"""Estimators over repeats: exact values, and properties that hold for any counts."""

import itertools
from collections import Counter
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.metrics.estimators import (
    majority_at_k,
    pass_at_k,
    pass_at_k_of,
    pass_hat_k,
    pass_hat_k_of,
    variance_components,
)

Votes = tuple[tuple[int, float], ...]
counts = st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, 13)))
votes = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=4).map(tuple)


@settings(max_examples=25, deadline=None)
@given(counts)
def test_pass_at_k_is_the_share_of_subsets_with_a_pass(given: tuple[int, int, int]) -> None:
    n, c, k = given
    if k > n:
        assert pass_at_k(n, c, k) is None and pass_hat_k(n, c, k) is None
        return
    samples = [1] * c + [0] * (n - c)
    subsets = list(itertools.combinations(samples, k))
    assert pass_at_k(n, c, k) == pytest.approx(mean(any(subset) for subset in subsets))
    assert pass_hat_k(n, c, k) == pytest.approx(mean(all(subset) for subset in subsets))


def test_many_tasks_at_once_are_each_task_alone() -> None:
    n, c = np.array([4, 8, 4, 5]), np.array([1, 0, 1, 5])
    assert pass_at_k_of(n, c, 2) == pytest.approx([pass_at_k(int(a), int(b), 2) for a, b in zip(n, c, strict=True)])
    assert pass_hat_k_of(n, c, 2) == pytest.approx([pass_hat_k(int(a), int(b), 2) for a, b in zip(n, c, strict=True)])
    assert len(pass_at_k_of(n[:0], c[:0], 2)) == 0


def by_enumeration(divided: Votes, k: int) -> float:
    samples = [index for index, (count, _) in enumerate(divided) for _ in range(count)]
    values = []
    for subset in itertools.combinations(samples, k):
        said = Counter(subset)
        leaders = [answer for answer, times in said.items() if times == max(said.values())]
        values.append(mean(divided[answer][1] for answer in leaders))
    return mean(values)


@settings(max_examples=25, deadline=None)
@given(votes, st.integers(1, 8))
def test_majority_at_k_is_the_mean_over_all_subsets(divided: Votes, k: int) -> None:
    n = sum(count for count, _ in divided)
    if k > n:
        assert majority_at_k(divided, k) is None
    else:
        assert majority_at_k(divided, k) == pytest.approx(by_enumeration(divided, k))


@settings(max_examples=25, deadline=None)
@given(votes)
def test_the_order_of_answers_does_not_matter(divided: Votes) -> None:
    n = sum(count for count, _ in divided)
    assert majority_at_k(divided, n) == majority_at_k(tuple(reversed(divided)), n)


@pytest.mark.parametrize("call", [(2, 3, 1), (2, 1, 0), (2, -1, 1)])
def test_what_is_no_count_is_refused(call: tuple[int, int, int]) -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="0 <= c <= n"):
            function(*call)
    with pytest.raises(ValueError, match="k >= 1"):
        majority_at_k(((2, 1.0),), 0)


def test_variance_splits_into_what_differs_between_tasks_and_what_within() -> None:
    rng = np.random.default_rng(5)
    chances = rng.choice([0.2, 0.8], 20_000)
    rewards = (rng.random((20_000, 4)) < chances[:, None]).astype(float)
    found = variance_components(rewards.mean(axis=1), rewards.var(axis=1, ddof=1), np.full(20_000, 4))
    assert found == pytest.approx((0.09, 0.16), abs=0.004)


def test_variance_that_cannot_be_split_is_not_zero() -> None:
    nan = np.array([np.nan, np.nan])
    assert variance_components(np.array([0.0, 1.0]), nan, np.array([1, 1])) == (None, None)
    assert variance_components(np.array([0.5]), np.array([0.5]), np.array([2])) == (None, 0.5)
