"""Means and errors of numbers as large as a 64-bit float can be: a reward may be any finite number, but the sum of two of 1e308 is none.

Numbers that are too large to be squared and summed are divided by a power of two, which changes no digit, and what comes of
them is multiplied by it.
"""

from math import frexp, isfinite, ldexp
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LARGE = 2.0**500
"""About 3e150: the squares of 2^20 numbers up to this can be summed."""
TOO_LARGE = "beyond 1.8e308, the most that a 64-bit number holds"


def scale_of(*arrays: Array) -> float:
    """1, or where something is above LARGE the power of two by which all of it comes below 2. NaN is passed over."""
    ends = [
        end for values in arrays for end in (np.fmax.reduce(values, initial=0.0), np.fmin.reduce(values, initial=0.0))
    ]
    greatest = max((abs(float(end)) for end in ends), default=0.0)
    return ldexp(1.0, frexp(greatest)[1] - 1) if LARGE < greatest < np.inf else 1.0


def mean_of(values: Array) -> float:
    """The mean of at least one finite number: finite, too."""
    scale = scale_of(values)
    return float(values.mean()) if scale == 1.0 else float((values / scale).mean()) * scale


def times(value: float | None, scale: float) -> float | None:
    """The product; None for None, and where it is beyond a 64-bit float."""
    product = None if value is None else value * scale
    return product if product is not None and isfinite(product) else None
