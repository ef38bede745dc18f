"""Estimators over the repeats of one task."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, prod

import numpy as np

from gymflow.metrics.intervals import Array
from gymflow.metrics.magnitudes import mean_of, scale_of


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Unbiased probability that at least one of k samples passes, given c passes in n samples.

    1 - C(n-c, k) / C(n, k) in product form (Chen et al. 2021, arXiv:2107.03374). None where k > n: it cannot be estimated.
    """
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"pass@k needs 0 <= c <= n and k >= 1, not n={n}, c={c}, k={k}")
    if k > n:
        return None
    if n - c < k:
        return 1.0
    return 1.0 - prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Unbiased probability that all of k samples pass: C(c, k) / C(n, k) (tau-bench, arXiv:2406.12045). None where k > n."""
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"pass^k needs 0 <= c <= n and k >= 1, not n={n}, c={c}, k={k}")
    if k > n:
        return None
    return prod((c - i) / (n - i) for i in range(k)) if c >= k else 0.0


def pass_at_k_of(n: Array, c: Array, k: int) -> Array:
    """`pass_at_k` of many tasks that all have n >= k."""
    return _of_pairs(pass_at_k, n, c, k)


def pass_hat_k_of(n: Array, c: Array, k: int) -> Array:
    """`pass_hat_k` of many tasks that all have n >= k."""
    return _of_pairs(pass_hat_k, n, c, k)


@lru_cache(maxsize=65536)
def majority_at_k(votes: tuple[tuple[int, float], ...], k: int) -> float | None:
    """Probability that the answer that most of k samples give is right; None where k exceeds the number of samples.

    `votes`: for each different answer how many samples gave it, and which share of these is right. The expectation is exact,
    over all C(n, k) subsets of the samples; answers that tie share the decision, so nothing is left to chance or order.
    An unanswered rollout is wrong, unless the verifier passed it: then it is a vote of its own (majority.sql).
    """
    n = sum(count for count, _ in votes)
    if k < 1:
        raise ValueError(f"majority@k needs k >= 1, not {k}")
    if k > n:
        return None
    return float(sum(_led_by(votes, k, top) for top in range(1, k + 1)) / comb(n, k))


def _led_by(votes: tuple[tuple[int, float], ...], k: int, top: int) -> Fraction:
    """Over the subsets of size k in which the leading answers have `top` samples each: the sum of the leaders' mean share right."""
    # (samples taken, leaders) -> (subsets, sum over them of the leaders' shares)
    ways: dict[tuple[int, int], tuple[int, int | Fraction]] = {(0, 0): (1, 0)}
    for count, right in votes:
        share = Fraction(right) if right % 1 else int(right)  # nearly always whole, and then ten times quicker
        grown: dict[tuple[int, int], tuple[int, int | Fraction]] = {}
        for (size, leaders), (subsets, shares) in ways.items():
            for taken in range(min(count, top, k - size) + 1):
                leads = taken == top
                key = (size + taken, leaders + leads)
                choices = comb(count, taken)
                before, total = grown.get(key, (0, 0))
                added = shares + subsets * share if leads else shares
                grown[key] = (before + choices * subsets, total + choices * added)
        ways = grown
    return sum(
        (Fraction(shares) / leaders for (size, leaders), (_, shares) in ways.items() if size == k and leaders),
        Fraction(0),
    )


def variance_components(means: Array, variances: Array, counts: Array) -> tuple[float | None, float | None]:
    """Variance of the reward between tasks and within a task (Miller 2024): the within part is the mean of the per-task variances
    (ddof 1) over tasks of at least two repeats; the between part is that of the task means less what the repeats account for,
    and not below 0. None where there are too few tasks or repeats, or where it is beyond a 64-bit float. `variances` is NaN for a
    single repeat, and for rewards too large to have one."""
    repeated = counts > 1
    if not repeated.any() or not np.isfinite(variances[repeated]).all():
        return None, None
    within = mean_of(variances[repeated])
    if len(means) < 2 or scale_of(means) != 1.0:
        return None, within
    return max(0.0, float(means.var(ddof=1)) - within * float((1.0 / counts).mean())), within


def _of_pairs(function: Callable[[int, int, int], float | None], n: Array, c: Array, k: int) -> Array:
    if len(n) == 0:
        return np.empty(0)
    base = int(n.max()) + 1
    pairs, which = np.unique(n * base + c, return_inverse=True)
    values = np.array([function(*divmod(int(pair), base), k) for pair in pairs], float)
    return np.asarray(values[which])
