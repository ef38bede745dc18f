"""The quality side of a profile line: every estimate over the tasks of one environment and agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pyarrow as pa

from gymflow.contracts.estimate import Estimate, Interval
from gymflow.contracts.profile import AtK, Band, Variance
from gymflow.metrics.bootstrap import RESAMPLES, SEED, bootstrap_interval
from gymflow.metrics.estimators import majority_at_k, variance_components
from gymflow.metrics.intervals import (
    CONFIDENCE,
    Array,
    ClusteredError,
    clustered_error,
    mean_estimate,
    t_interval,
)
from gymflow.metrics.magnitudes import TOO_LARGE, mean_of
from gymflow.metrics.task_table import TaskTable, numbered

UNIT = (0.0, 1.0)
HARD, EASY = 0.25, 0.75
"""Between these pass rates a task is useful for training: it has something to learn and something to lose."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a profile is asked for: slices by these names, these k, and how its errors are made."""

    by: Sequence[str] = ()
    k: Sequence[int] = ()
    confidence: float = CONFIDENCE
    seed: int = SEED
    resamples: int = RESAMPLES


@dataclass(slots=True)
class Votes:
    """How the answers of a line's tasks divide: one element per different division and cluster."""

    divisions: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    clusters: list[str | None] = field(default_factory=list)
    unanswered: int = 0


class Quality:
    """Estimates over the tasks with a scored rollout. `bounds`: the range of the rewards, where it is known."""

    def __init__(self, table: TaskTable, bounds: tuple[float, float] | None, options: Options) -> None:
        self.all = table
        self.scored = table.where(table.has_score)
        self.bounds = bounds
        self.options = options
        self.most = int(self.scored.scored.max()) if len(self.scored.scored) else 0
        self.between, self.within = variance_components(self.scored.mean, self.scored.variance, self.scored.scored)

    @property
    def ks(self) -> list[int]:
        """1, 2, 4, … up to the most repeats, that number itself, and what was asked for."""
        powers = {1 << power for power in range(self.most.bit_length())}
        return sorted({1, *powers, max(self.most, 1), *self.options.k})

    def mean(self, values: Array, bounds: tuple[float, float] | None, clusters: Array | None) -> Estimate:
        """The mean of per-task values."""
        return mean_estimate(
            values, clusters, bounds=bounds, independent=self.most == 1, confidence=self.options.confidence
        )

    def score(self) -> Estimate:
        """Mean over tasks of the mean reward."""
        return self.mean(self.scored.mean, self.bounds, self.scored.clusters)

    def error_by_task(self) -> float | None:
        """Standard error of the score clustered by task alone, whatever clusters the tasks have."""
        return clustered_error(self.scored.mean).standard_error

    def score_t(self) -> Interval | None:
        """Student's t for the score, not confined to the range of the rewards."""
        if not len(self.scored.mean):
            return None
        error = clustered_error(self.scored.mean, self.scored.clusters)
        return t_interval(mean_of(self.scored.mean), error, self.options.confidence)

    def score_bootstrap(self) -> Interval | None:
        """Percentile bootstrap over tasks, or clusters of them."""
        options = self.options
        return bootstrap_interval(
            self.scored.mean,
            self.scored.clusters,
            seed=options.seed,
            resamples=options.resamples,
            confidence=options.confidence,
        )

    def pass_rate(self) -> Estimate:
        """Mean over tasks of the share of rollouts that passed."""
        return self.mean(self.scored.pass_rate, UNIT, self.scored.clusters)

    def at(self, function: Callable[[Array, Array, int], Array]) -> list[AtK]:
        """A function of (scored, passed, k), such as pass@k, for every k."""

        def estimate(k: int) -> Estimate:
            tasks = self._with_repeats(k)
            if tasks is None:
                return self._too_few(k)
            return self.mean(function(tasks.scored, tasks.passed, k), UNIT, tasks.clusters)

        return [AtK(k=k, estimate=estimate(k)) for k in self.ks]

    def average_of(self) -> list[AtK]:
        """The mean reward of k samples a task, with the standard error that so many would have: sqrt((between + within / k) / n)
        (Miller 2024)."""
        return [AtK(k=k, estimate=self._average_of(k)) for k in self.ks]

    def majority_at(self, votes: Votes | None) -> list[AtK]:
        """majority@k for every k; nothing where no answer was extracted."""
        if votes is None or votes.unanswered == self.scored.scored.sum():
            return []
        return [AtK(k=k, estimate=self._majority(votes, k)) for k in self.ks]

    def variance(self) -> Variance:
        """Between tasks and within a task."""
        reason = None
        if self.within is None:
            reason = "no task has two scored rollouts" if self.most < 2 else TOO_LARGE
        elif self.between is None:
            reason = "a single task does not vary" if len(self.scored.mean) < 2 else TOO_LARGE
        return Variance(between_tasks=self.between, within_task=self.within, reason=reason)

    def extremes(self) -> tuple[float | None, float | None]:
        """The score if every rollout without a reward had the least, or the greatest one."""
        table = self.all
        if self.bounds is None or not len(table.planned):
            return None, None
        covered = table.scored / table.planned
        scored = np.where(table.has_score, table.mean, 0.0) * covered
        lowest, highest = (mean_of(scored + end * (1 - covered)) for end in self.bounds)
        return lowest, highest

    def bands(self) -> list[Band]:
        """How the tasks divide by pass rate."""
        rates = self.scored.pass_rate
        masks = [
            ("never", 0.0, 0.0, rates == 0.0),
            ("hard", 0.0, HARD, (rates > 0.0) & (rates < HARD)),
            ("useful", HARD, EASY, (rates >= HARD) & (rates <= EASY)),
            ("easy", EASY, 1.0, (rates > EASY) & (rates < 1.0)),
            ("always", 1.0, 1.0, rates == 1.0),
        ]
        return [
            Band(
                name=name,
                low=low,
                high=high,
                tasks=int(mask.sum()),
                share=float(mask.mean()) if len(rates) else None,
            )
            for name, low, high, mask in masks
        ]

    def _with_repeats(self, k: int) -> TaskTable | None:
        """The tasks with at least k scored rollouts; None where there is none."""
        enough = self.scored.scored >= k
        return self.scored.where(enough) if enough.any() else None

    def _too_few(self, k: int) -> Estimate:
        reason = (
            f"no task has {k} scored rollouts (the most is {self.most})" if self.most else "there is no scored task"
        )
        return Estimate(value=None, tasks=0, groups=0, reason=reason)

    def _average_of(self, k: int) -> Estimate:
        tasks = self._with_repeats(k)
        if tasks is None:
            return self._too_few(k)
        mean, n = mean_of(tasks.mean), len(tasks.mean)
        if self.between is None or self.within is None or tasks.clusters is not None:
            why = "the tasks are clustered" if tasks.clusters is not None else self.variance().reason
            return Estimate(value=mean, tasks=n, groups=n, reason=f"no standard error at {k} repeats: {why}")
        error = ClusteredError(sqrt((self.between + self.within / k) / n), n)
        interval = t_interval(mean, error, self.options.confidence) if n > 1 else None
        return Estimate(value=mean, standard_error=error.standard_error, interval=interval, tasks=n, groups=n)

    def _majority(self, votes: Votes, k: int) -> Estimate:
        enough = [index for index, scored in enumerate(votes.scored) if scored >= k]
        if not enough:
            return self._too_few(k)
        values = np.array([majority_at_k(votes.divisions[index], k) for index in enough], float)
        tasks = [votes.tasks[index] for index in enough]
        clusters = [votes.clusters[index] for index in enough for _ in range(votes.tasks[index])]
        return self.mean(np.repeat(values, tasks), UNIT, numbered(pa.array(clusters, pa.string())))
