"""Distribution functions that intervals and tests need: normal, Student's t, binomial. Checked against scipy in the tests."""

from functools import lru_cache
from math import exp, inf, lgamma, log
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_LARGE_DF = 1e7
"""Degrees of freedom from which Student's t and the normal distribution agree to seven digits."""


def normal_quantile(p: float) -> float:
    """z with P(Z <= z) = p, for 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) for Student's t with `df` > 0 degrees of freedom."""
    if df >= _LARGE_DF:
        return _NORMAL.cdf(t)
    tail = 0.5 * beta_cdf(df / (df + t * t), df / 2, 0.5)
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """t with P(T <= t) = p, for 0 < p < 1 and `df` > 0, by bisection to the last digits."""
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    if df >= _LARGE_DF:
        return normal_quantile(p)
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        low, high = high, 2.0 * high
    while high - low > 1e-13 * (1.0 + high):
        middle = (low + high) / 2
        if t_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) for a binomial X of n trials, 0 < p < 1."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else beta_cdf(1.0 - p, n - k, k + 1)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz; DLMF 8.17.22)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x)) / a
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1))
    value, m = d, 0
    change = inf
    while abs(change - 1.0) > 1e-15 and m < 100_000:
        m += 1
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            change = c * d
            value *= change
    return min(1.0, max(0.0, front * value))


def two_sided_t(difference: float, error: float, df: float) -> float:
    """p of a difference with a positive standard error under Student's t."""
    return 2.0 * t_cdf(-abs(difference) / error, df)


def _away(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
