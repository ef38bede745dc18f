"""Estimators over the repeats of one task."""

from math import prod


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
