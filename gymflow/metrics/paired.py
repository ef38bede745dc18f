"""Two runs on the same tasks: differences with their error, exact tests, and what a wanted effect would take.

d_i = candidate - base on task i, each the mean over that run's repeats (Miller 2024, arXiv:2411.00640, section 4).
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from math import ceil, sqrt

import numpy as np

from gymflow.contracts.estimate import Interval
from gymflow.metrics.bootstrap import SEED
from gymflow.metrics.distributions import binomial_cdf, normal_quantile, two_sided_t
from gymflow.metrics.intervals import (
    CONFIDENCE,
    NO_SPREAD,
    Array,
    ClusteredError,
    bounded_interval,
    clustered_error,
    t_interval,
    wilson,
)
from gymflow.metrics.magnitudes import LARGE, TOO_LARGE, scale_of, times

ALPHA, POWER = 0.05, 0.8
PERMUTATIONS = 9999
MOST_SIGNS = 200_000_000
"""Random signs drawn for one test: from 20 000 differing groups on the permutations get fewer, down to 999."""
EXACT_UP_TO = 16
"""Groups that differ up to which all sign patterns are gone through (2^16)."""
_SIGNS_AT_ONCE = 1 << 22
_FEW, _EQUAL = 256, 8
"""Most different sizes, and sizes to each of them on average, with which counting positive ones is quicker than drawing signs."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference of two means over the same tasks. `standard_error`, `p` are of the paired t test, clustered where clusters are
    given; None, with the `reason`, where there is a single group. `task_error`: with each task its own group. What is beyond a
    64-bit float is None, too."""

    difference: float | None
    standard_error: float | None
    interval: Interval | None
    p: float | None
    groups: int
    task_error: float | None
    reason: str | None = None


def paired_difference(
    base: Array,
    candidate: Array,
    clusters: Array | None = None,
    *,
    width: float | None = None,
    confidence: float = CONFIDENCE,
) -> Paired:
    """`paired` of candidate - base, whatever their magnitude. A `width` that some difference exceeds is no range of the rewards."""
    scale = scale_of(base, candidate)
    change = candidate / scale - base / scale
    if width is not None:
        width = width / scale if np.abs(change).max() <= width / scale else None
    found = paired(change, clusters, width=width, confidence=confidence)
    if scale == 1.0:
        return found
    grown = replace(
        found,
        difference=times(found.difference, scale),
        standard_error=times(found.standard_error, scale),
        interval=_grown(found.interval, scale),
        task_error=times(found.task_error, scale),
    )
    lost = any(
        (before is None) != (after is None) for before, after in zip(astuple(found), astuple(grown), strict=True)
    )
    return replace(grown, reason=TOO_LARGE) if lost else grown


def _grown(interval: Interval | None, scale: float) -> Interval | None:
    if interval is None:
        return None
    low, high = times(interval.low, scale), times(interval.high, scale)
    return None if low is None or high is None else Interval(low=low, high=high, method=interval.method)


def paired(
    differences: Array, clusters: Array | None = None, *, width: float | None = None, confidence: float = CONFIDENCE
) -> Paired:
    """Paired t test over at least one task. With the `width` of the reward range the interval stays within it.

    Where all groups differ equally, t has nothing to divide. Then p is that of exchanging base and candidate group by group,
    2^(1-G), or 1 for no difference; and the interval is what so many groups allow: if none differs, no more than Wilson's share of
    them can (none without the width).
    """
    error = clustered_error(differences, clusters)
    alone = error.standard_error if clusters is None else clustered_error(differences).standard_error
    mean = float(differences.mean())
    if error.standard_error is None:
        return Paired(mean, None, None, None, error.groups, alone, "a single independent task has no standard error")
    if error.standard_error < NO_SPREAD:
        p = 1.0 if abs(mean) < NO_SPREAD else 2.0 ** (1 - error.groups)
    else:
        p = two_sided_t(mean, error.standard_error, error.groups - 1)
    if width is None:
        interval = t_interval(mean, error, confidence)
    elif not differences.any():
        reach = width * wilson(0, error.groups, confidence)[1]
        interval = Interval(low=-reach, high=reach, method="discordant")
    else:
        interval = bounded_interval(mean, error, (-width, width), trials=None, confidence=confidence)
    return Paired(mean, error.standard_error, interval, p, error.groups, alone)


def mcnemar(base: Array, candidate: Array) -> tuple[int, int, float]:
    """Tasks that pass only in the candidate, only in the base, and the exact two-sided p (binomial of the discordant tasks; 1
    without any). Both arrays are boolean, one rollout a task."""
    gained, lost = int((candidate & ~base).sum()), int((base & ~candidate).sum())
    return gained, lost, min(1.0, 2.0 * binomial_cdf(min(gained, lost), gained + lost, 0.5))


def sign_flip_p(differences: Array, clusters: Array | None = None, *, seed: int = SEED) -> tuple[float, bool]:
    """Two-sided p of the mean difference when base and candidate are exchanged at random, group by group; and whether all
    exchanges were gone through. Sampled ones give (1 + as extreme) / (1 + all), which keeps the level."""
    scale = scale_of(differences)
    sums = differences = differences / scale if scale != 1.0 else differences
    if clusters is not None:
        _, member = np.unique(clusters, return_inverse=True)
        sums = np.bincount(member, weights=differences)
    sizes = np.abs(sums[np.abs(sums) > NO_SPREAD])
    observed = abs(float(sums.sum())) - 1e-9
    if len(sizes) == 0:
        return 1.0, True
    if len(sizes) <= EXACT_UP_TO:
        totals = np.zeros(1)
        for size in sizes:
            totals = np.concatenate([totals + size, totals - size])
        return float((np.abs(totals) >= observed).mean()), True
    permutations = max(999, min(PERMUTATIONS, MOST_SIGNS // len(sizes)))
    totals = np.abs(_flipped(sizes, permutations, np.random.default_rng(seed)))
    return (1 + int((totals >= observed).sum())) / (1 + permutations), False


def _flipped(sizes: Array, permutations: int, rng: np.random.Generator) -> Array:
    """Sums of the sizes under so many drawings of random signs."""
    kinds, counts = np.unique(sizes, return_counts=True)
    if len(kinds) <= min(_FEW, len(sizes) // _EQUAL):  # of equal sizes it only matters how many are positive
        positive = rng.binomial(counts, 0.5, size=(permutations, len(kinds)))
        return np.asarray((2 * positive - counts) @ kinds)
    totals = np.empty(permutations)
    at_once = max(1, _SIGNS_AT_ONCE // len(sizes))
    for start in range(0, permutations, at_once):
        rows = min(at_once, permutations - start)
        bits = np.unpackbits(rng.integers(0, 256, (rows, -(-len(sizes) // 8)), np.uint8), axis=1, count=len(sizes))
        totals[start : start + rows] = 2.0 * (bits @ sizes) - sizes.sum()
    return totals


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p values adjusted for their number (Holm 1979), in the order given; undefined ones stay so and do not count."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, index) in enumerate(known):
        reached = max(reached, min(1.0, (len(known) - rank) * p))
        adjusted[index] = reached
    return adjusted


@dataclass(frozen=True, slots=True)
class Power:
    """What the comparison can and could see, at a two-sided level of 5 % and a power of 80 %.

    `detectable`: the least effect at the present tasks and repeats. `tasks`: tasks that the wanted effect needs at the present
    repeats. `repeats`: repeats of every present task, on both sides; None where no number of them suffices, since the tasks
    themselves differ too much, or where a single repeat hides how much of the variance they would remove.
    """

    detectable: float | None
    effect: float
    tasks: int | None
    repeats: int | None


MOST_NEEDED = 1e15
"""More tasks or repeats than these are none that anybody could run."""


def power(error: ClusteredError, tasks: int, effect: float, within: tuple[float | None, float | None]) -> Power:
    """n = (z_a/2 + z_b)^2 (w^2 + s_A^2/K_A + s_B^2/K_B) / d^2 (Miller 2024, section 5), the bracket being n * SE^2 of the paired
    difference as it was observed. `within`: mean over tasks of s^2/K and of s^2, both sides summed; None: not known. Without a
    spread of the differences there is no variance to plan with, and all but the effect is None; so are numbers above
    MOST_NEEDED."""
    if error.standard_error is None or error.standard_error < NO_SPREAD:
        return Power(None, effect, None, None)
    z = normal_quantile(1 - ALPHA / 2) + normal_quantile(POWER)
    detectable = times(error.standard_error, z)
    if error.standard_error > LARGE:
        return Power(detectable, effect, None, None)
    variance = tasks * error.standard_error**2
    ratio = z * error.standard_error / effect
    needed = _needed(tasks * ratio * ratio, 2)
    removable, single = within
    repeats = None
    if removable is not None and single is not None:
        room = tasks * (effect / z) * (effect / z) - max(0.0, variance - removable)
        repeats = _needed(single / room, 1) if room > 0 else None
    return Power(detectable, effect, needed, repeats)


def _needed(number: float, least: int) -> int | None:
    return max(least, ceil(number)) if number <= MOST_NEEDED else None


def correlation(first: Array, second: Array) -> float | None:
    """Pearson's; None where one side does not vary."""
    if len(first) < 2:
        return None
    first, second = first / scale_of(first), second / scale_of(second)
    spread = float(first.std() * second.std())
    return float(((first - first.mean()) * (second - second.mean())).mean()) / spread if spread > 0 else None


def unpaired_error(first: Array, second: Array) -> float | None:
    """Standard error of the difference as if the two sides had nothing to do with each other."""
    if len(first) < 2 or len(second) < 2:
        return None
    scale = scale_of(first, second)
    first, second = first / scale, second / scale
    return times(sqrt(float(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))), scale)
