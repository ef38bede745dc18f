"""Quantiles and distribution functions without scipy, against scipy."""

import pytest
from scipy import stats

from gymflow.metrics.distributions import beta_cdf, binomial_cdf, t_cdf, t_quantile, two_sided_t


@pytest.mark.parametrize("df", [1, 2, 3, 9, 29.5, 99, 1000, 125_000, 1e8])
@pytest.mark.parametrize("p", [0.0005, 0.025, 0.2, 0.5, 0.9, 0.975, 0.9999])
def test_students_t_is_scipys(df: float, p: float) -> None:
    expected = stats.t.ppf(p, df)
    assert t_quantile(p, df) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert t_cdf(expected, df) == pytest.approx(p, abs=1e-7)


@pytest.mark.parametrize("n", [1, 5, 50, 1000, 100_000])
def test_the_binomial_is_scipys(n: int) -> None:
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        assert binomial_cdf(k, n, 0.5) == pytest.approx(stats.binom.cdf(k, n, 0.5), abs=1e-9)
        assert binomial_cdf(k, n, 0.03) == pytest.approx(stats.binom.cdf(k, n, 0.03), abs=1e-9)
    assert binomial_cdf(-1, n, 0.5) == 0.0


def test_the_incomplete_beta_ends_at_its_ends() -> None:
    assert (beta_cdf(0.0, 2, 3), beta_cdf(1.0, 2, 3)) == (0.0, 1.0)


def test_the_p_of_a_reported_difference() -> None:
    assert two_sided_t(0.3, 0.1527525232, 9) == pytest.approx(0.0811262, abs=1e-6)
