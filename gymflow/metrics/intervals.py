"""Standard errors and confidence intervals of means over tasks.

The unit is the task: its repeats are averaged first, so that a standard error over tasks is one clustered by task (Miller 2024,
arXiv:2411.00640). Tasks that share a `cluster` are one draw together.
"""

from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from gymflow.contracts.estimate import Estimate, Interval
from gymflow.metrics.distributions import normal_quantile, t_quantile
from gymflow.metrics.magnitudes import TOO_LARGE, mean_of, scale_of, times
from gymflow.metrics.magnitudes import Array as Array

CONFIDENCE = 0.95
NO_SPREAD = 1e-12
"""Standard errors below are those of equal values, but for rounding."""


class ClusteredError(NamedTuple):
    """Standard error of a mean over `groups` independent groups; None for fewer than two, and beyond a 64-bit float."""

    standard_error: float | None
    groups: int


def clustered_error(values: Array, clusters: Array | None = None) -> ClusteredError:
    """sqrt(G/(G-1) * sum_c (sum_{i in c} (s_i - mean))^2) / n over the G clusters (Miller 2024, with inspect's small-sample factor).

    Without clusters every value is its own: s / sqrt(n) with ddof 1. `clusters` holds one integer per value.
    """
    n = len(values)
    if n == 0:
        return ClusteredError(None, 0)
    scale = scale_of(values)
    scaled = values / scale if scale != 1.0 else values
    sums = scaled - scaled.mean()
    if clusters is not None:
        _, member = np.unique(clusters, return_inverse=True)
        sums = np.bincount(member, weights=sums)
    groups = len(sums)
    if groups < 2:
        return ClusteredError(None, groups)
    return ClusteredError(times(sqrt(float(sums @ sums) * groups / (groups - 1)) / n, scale), groups)


def wilson(
    successes: float, trials: float, confidence: float = CONFIDENCE, critical: float | None = None
) -> tuple[float, float]:
    """Score interval of a proportion (Wilson 1927): inside [0, 1], and never of width 0 at 0/n or n/n. `trials` > 0."""
    z = normal_quantile((1 + confidence) / 2) if critical is None else critical
    p = successes / trials
    centre = p + z * z / (2 * trials)
    half = z * sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes <= 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if successes >= trials else min(1.0, (centre + half) / scale)
    return low, high


def t_interval(mean: float, error: ClusteredError, confidence: float = CONFIDENCE) -> Interval | None:
    """mean ± t * SE with G - 1 degrees of freedom; None without a standard error, where it is 0 (no spread is no certainty), and
    where an end is beyond a 64-bit float."""
    if error.standard_error is None or error.standard_error < NO_SPREAD:
        return None
    half = t_quantile((1 + confidence) / 2, error.groups - 1) * error.standard_error
    low, high = mean - half, mean + half
    return Interval(low=low, high=high, method="t") if isfinite(low) and isfinite(high) else None


def bounded_interval(
    mean: float, error: ClusteredError, bounds: tuple[float, float], *, trials: int | None, confidence: float
) -> Interval | None:
    """Wilson's interval for the mean of values within `bounds`, on the scale of the bounds.

    `trials`: the values are so many independent draws of the two ends, and the interval is Wilson's own. Otherwise the number
    of trials is the effective one, p(1-p) / SE^2, with Student's t for z (Korn & Graubard 1998; Franco et al. 2019). Where all
    values are equal the standard error is 0 and says nothing: then every group is one trial.
    """
    low, high = bounds
    width = high - low
    if not isfinite(width):
        return t_interval(mean, error, confidence)
    p = (mean - low) / width
    critical = None
    if trials is None:
        if error.standard_error is None:
            return None
        critical = t_quantile((1 + confidence) / 2, error.groups - 1)
        scaled = error.standard_error / width
        trials_used = p * (1 - p) / scaled**2 if scaled > NO_SPREAD else float(error.groups)
    else:
        trials_used = float(trials)
    found = wilson(p * trials_used, trials_used, confidence, critical)
    return Interval(low=low + width * found[0], high=low + width * found[1], method="wilson")


def mean_estimate(
    values: Array,
    clusters: Array | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    independent: bool = False,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A mean over tasks with its interval: Wilson's where the values are known to lie within `bounds`, else Student's t.

    `independent`: every value is the reward of a single rollout.
    """
    n = len(values)
    if n == 0:
        return Estimate(value=None, tasks=0, groups=0, reason="there is no scored task")
    mean = mean_of(values)
    error = clustered_error(values, clusters)
    inside = bounds is not None and bounds[0] < bounds[1] and bounds[0] <= values.min() and values.max() <= bounds[1]
    if bounds is not None and inside:
        ends = bool(np.isin(values, bounds).all())
        trials = n if independent and ends and error.groups == n else None
        interval = bounded_interval(mean, error, bounds, trials=trials, confidence=confidence)
    else:
        interval = t_interval(mean, error, confidence)
    reason = None
    if error.standard_error is None and error.groups < 2:
        what = "cluster" if clusters is not None else "task"
        reason = f"a single {what} has no standard error"
    elif error.standard_error is None or (interval is None and error.standard_error >= NO_SPREAD):
        reason = TOO_LARGE
    elif interval is None:
        reason = "all tasks came to the same, in an unknown range: no spread to tell an interval from"
    return Estimate(
        value=mean, standard_error=error.standard_error, interval=interval, tasks=n, groups=error.groups, reason=reason
    )
