"""How far two raters agree: a judge and people, as pure functions of a table of counts."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa with its parts. None is undefined, and `reason` says why."""

    n: int
    observed: float | None
    expected: float | None
    value: float | None
    standard_error: float | None = None
    reason: str | None = None


def cohen_kappa(pairs: Iterable[tuple[Hashable, Hashable]]) -> Kappa:
    """Agreement of two raters over the same items beyond what their own frequencies would give by chance.

    kappa = (p_o - p_e) / (1 - p_e) (Cohen 1960); large-sample standard error of Fleiss, Cohen and Everitt (1969). Undefined
    without items, and where both raters always say the same one thing.
    """
    counts: dict[tuple[Hashable, Hashable], int] = {}
    for pair in pairs:
        counts[pair] = counts.get(pair, 0) + 1
    n = sum(counts.values())
    if n == 0:
        return Kappa(0, None, None, None, reason="no item has both labels")
    labels = {label for pair in counts for label in pair}
    first = {label: sum(count for (one, _), count in counts.items() if one == label) / n for label in labels}
    second = {label: sum(count for (_, other), count in counts.items() if other == label) / n for label in labels}
    observed = sum(counts.get((label, label), 0) for label in labels) / n
    expected = sum(first[label] * second[label] for label in labels)
    if expected == 1.0:
        return Kappa(n, observed, expected, None, reason="both raters say the same of every item")
    kappa = (observed - expected) / (1 - expected)
    return Kappa(n, observed, expected, kappa, _kappa_error(counts, n, first, second, kappa, expected))


def _kappa_error(
    counts: Mapping[tuple[Hashable, Hashable], int],
    n: int,
    first: Mapping[Hashable, float],
    second: Mapping[Hashable, float],
    kappa: float,
    expected: float,
) -> float:
    diagonal = sum(
        count / n * (1 - (first[one] + second[one]) * (1 - kappa)) ** 2
        for (one, other), count in counts.items()
        if one == other
    )
    beside = (1 - kappa) ** 2 * sum(
        count / n * (first[other] + second[one]) ** 2 for (one, other), count in counts.items() if one != other
    )
    variance = (diagonal + beside - (kappa - expected * (1 - kappa)) ** 2) / (n * (1 - expected) ** 2)
    return sqrt(max(variance, 0.0))


@dataclass(frozen=True, slots=True)
class Detection:
    """A judge's passes against people's: counts, and the rates that they give. None where nothing could be detected."""

    true_pass: int
    false_pass: int
    false_fail: int
    true_fail: int

    @property
    def sensitivity(self) -> float | None:
        """Share of what people passed that the judge passed."""
        return _share(self.true_pass, self.true_pass + self.false_fail)

    @property
    def specificity(self) -> float | None:
        """Share of what people failed that the judge failed."""
        return _share(self.true_fail, self.true_fail + self.false_pass)


def detection(pairs: Sequence[tuple[bool, bool]]) -> Detection:
    """Counts of (judge, people) pairs."""
    return Detection(
        true_pass=sum(judge and people for judge, people in pairs),
        false_pass=sum(judge and not people for judge, people in pairs),
        false_fail=sum(people and not judge for judge, people in pairs),
        true_fail=sum(not judge and not people for judge, people in pairs),
    )


def corrected_rate(rate: float, sensitivity: float | None, specificity: float | None) -> float | None:
    """The pass rate that people would give, from the judge's: (q + sp - 1) / (se + sp - 1), within 0 and 1 (Rogan and Gladen
    1978). None where the judge is no better than chance, or one of the two is unknown."""
    if sensitivity is None or specificity is None or sensitivity + specificity <= 1:
        return None
    return min(1.0, max(0.0, (rate + specificity - 1) / (sensitivity + specificity - 1)))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
