"""Percentile bootstrap of a mean over tasks: whole tasks (or clusters of them) are drawn, all their repeats with them."""

import numpy as np

from gymflow.contracts.estimate import Interval
from gymflow.metrics.intervals import CONFIDENCE, Array
from gymflow.metrics.magnitudes import scale_of

RESAMPLES = 2000
SEED = 20240817
"""Of every bootstrap and permutation, unless another is asked for; stored with the result."""
_DRAWN_AT_ONCE = 1 << 20
_FEW = 1 << 10


def bootstrap_interval(
    values: Array,
    clusters: Array | None = None,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Percentiles of the resampled mean; None for fewer than two groups, and where all are equal: every draw is the same then.
    Memory does not grow with the number of tasks times that of resamples."""
    scale = scale_of(values)
    sums, sizes = _groups(values / scale if scale != 1.0 else values, clusters)
    if len(sums) < 2 or np.ptp(sums / sizes) == 0.0:
        return None
    means = resampled_means(sums, sizes, np.random.default_rng(seed), resamples)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(low=float(low) * scale, high=float(high) * scale, method="bootstrap")


def resampled_means(sums: Array, sizes: Array, rng: np.random.Generator, resamples: int) -> Array:
    """Means of `resamples` draws of as many groups as there are, with replacement, from groups of given sums and sizes."""
    groups = len(sums)
    kinds, counts = np.unique(sums + 1j * sizes, return_counts=True)
    if len(kinds) <= _FEW:  # equal groups need not be told apart: how often each kind is drawn is multinomial
        drawn = rng.multinomial(groups, counts / groups, size=resamples)
        return np.asarray((drawn @ kinds.real) / (drawn @ kinds.imag))
    means = np.empty(resamples)
    at_once = max(1, _DRAWN_AT_ONCE // groups)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        chosen = rng.integers(0, groups, size=(rows, groups), dtype=np.int32)
        means[start : start + rows] = sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1)
    return means


def _groups(values: Array, clusters: Array | None) -> tuple[Array, Array]:
    if clusters is None:
        return values, np.ones(len(values))
    _, member = np.unique(clusters, return_inverse=True)
    return np.bincount(member, weights=values), np.bincount(member).astype(float)
