"""The numbers of a comparison, over paired tasks."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.analysis.compare.pairing import Pairs
from gymflow.contracts.comparison import Difference, ExactTest, Flips, PowerReport, SliceDifference, TaskFlip
from gymflow.errors import InputError
from gymflow.metrics import paired as tests
from gymflow.metrics.bootstrap import SEED
from gymflow.metrics.intervals import CONFIDENCE, NO_SPREAD, Array, ClusteredError, clustered_error
from gymflow.metrics.magnitudes import TOO_LARGE, mean_of, scale_of, times

LISTED_FLIPS = 100
COSTS = ("prompt_tokens", "completion_tokens", "cost_usd", "turns", "duration_s")


@dataclass(frozen=True, slots=True)
class Settings:
    """How errors are made, and the effect that the power is told for."""

    effect: float = 0.02
    confidence: float = CONFIDENCE
    seed: int = SEED

    def __post_init__(self) -> None:
        if not (isfinite(self.effect) and self.effect > 0):
            raise InputError(f"--effect {self.effect}: write the difference that should be found, such as 0.02")


class Differences:
    """Differences over the pairs of one candidate. `width`: span of the reward range, where it is known."""

    def __init__(self, pairs: Pairs, width: float | None, settings: Settings) -> None:
        self.pairs = pairs
        self.width = width
        self.settings = settings
        self.base, self.candidate = (_Columns(table) for table in (pairs.base, pairs.candidate))

    def score(self, mask: Array | None = None) -> Difference:
        """Mean reward."""
        return self._difference(self.base.mean, self.candidate.mean, mask, self.width)

    def pass_rate(self, mask: Array | None = None) -> Difference:
        """Share of rollouts that passed."""
        return self._difference(self.base.pass_rate, self.candidate.pass_rate, mask, 1.0)

    def costs(self) -> dict[str, Difference]:
        """Mean per rollout of the task, where both sides report it."""
        found = {}
        for name in COSTS:
            base, candidate = (
                pc.fill_null(table[name], np.nan).to_numpy() for table in (self.pairs.base, self.pairs.candidate)
            )
            found[name] = self._difference(base, candidate, np.isfinite(base) & np.isfinite(candidate), None)
        return found

    def slices(self, masks: dict[tuple[str, str], Array]) -> list[SliceDifference]:
        """Over the tasks of each mask, which is over the base's own table."""
        return [
            SliceDifference(by=by, value=value, score=self.score(mine), pass_rate=self.pass_rate(mine))
            for (by, value), mask in masks.items()
            if (mine := mask[self.pairs.base_rows]).any()
        ]

    def unpaired_error(self) -> float | None:
        """Standard error of the score's difference, had the tasks not been paired."""
        return tests.unpaired_error(self.base.mean, self.candidate.mean)

    def correlation(self) -> float | None:
        """Of the task means."""
        return tests.correlation(self.base.mean, self.candidate.mean)

    def exact_test(self) -> ExactTest:
        """McNemar's of the pass where every task has one rollout on both sides and stands alone; else a permutation test of the
        score, whole clusters exchanged."""
        change = self.candidate.pass_rate - self.base.pass_rate
        gained, lost = int((change > 0).sum()), int((change < 0).sum())
        if not len(change):
            return ExactTest(name="permutation", p=None, exhaustive=False, gained=0, lost=0)
        single = (self.base.scored == 1).all() and (self.candidate.scored == 1).all()
        if single and self.pairs.clusters is None:
            *_, p = tests.mcnemar(self.base.pass_rate > 0, self.candidate.pass_rate > 0)
            return ExactTest(name="mcnemar", p=p, exhaustive=True, gained=gained, lost=lost)
        p, exhaustive = tests.sign_flip_p(self._change()[0], self.pairs.clusters, seed=self.settings.seed)
        return ExactTest(name="permutation", p=p, exhaustive=exhaustive, gained=gained, lost=lost)

    def power(self) -> PowerReport:
        """What the score's difference could show."""
        change, scale = self._change()
        scaled = clustered_error(change, self.pairs.clusters)
        error = ClusteredError(times(scaled.standard_error, scale), scaled.groups)
        found = tests.power(error, len(change), self.settings.effect, self._within())
        reason = None
        if error.groups < 2:
            reason = "there are fewer than two independent tasks"
        elif error.standard_error is not None and error.standard_error < NO_SPREAD:
            reason = "every task differs by the same: no spread to plan with"
        elif found.detectable is None or scale != 1.0:
            reason = TOO_LARGE
        elif found.tasks is None:
            reason = "the wanted effect is too small beside the spread of the differences"
        elif self._within()[0] is None:
            reason = "what further repeats would remove is not known: no task has two scored rollouts on both sides"
        elif found.repeats is None:
            reason = "the tasks differ too much for repeats to be enough"
        return PowerReport(
            detectable=found.detectable,
            effect=found.effect,
            tasks_needed=found.tasks,
            repeats_needed=found.repeats,
            reason=reason,
        )

    def flips(self) -> Flips:
        """Tasks that one side passes more often than not, and the other does not."""
        before, after = self.base.pass_rate, self.candidate.pass_rate
        gained, lost = (before <= 0.5) & (after > 0.5), (before > 0.5) & (after <= 0.5)
        rows = np.flatnonzero(gained | lost)
        order = rows[np.argsort(-np.abs(after - before)[rows], kind="stable")]
        listed = self.pairs.base.take(order[:LISTED_FLIPS]).select(["environment", "task_id", "task_key"]).to_pylist()
        return Flips(
            gained=int(gained.sum()),
            lost=int(lost.sum()),
            listed=[
                TaskFlip(
                    **task,
                    direction="gained" if gained[row] else "lost",
                    base=float(before[row]),
                    candidate=float(after[row]),
                )
                for task, row in zip(listed, order, strict=False)
            ],
        )

    def table(self) -> pa.Table:
        """A row per pair: both sides' rewards and pass rates."""
        names = ["environment", "task_key", "task_id", "cluster"]
        found = self.pairs.base.select(names)
        for side, columns, table in (
            ("base", self.base, self.pairs.base),
            ("candidate", self.candidate, self.pairs.candidate),
        ):
            found = found.append_column(f"{side}_reward", table["mean"])
            found = found.append_column(f"{side}_pass_rate", pa.array(columns.pass_rate))
            found = found.append_column(f"{side}_scored", table["scored"])
        return found

    def _difference(self, base: Array, candidate: Array, mask: Array | None, width: float | None) -> Difference:
        clusters = self.pairs.clusters
        if mask is not None:
            base, candidate = base[mask], candidate[mask]
            clusters = None if clusters is None else clusters[mask]
        if not len(base):
            return Difference(
                base=None, candidate=None, difference=None, tasks=0, groups=0, reason="no task has it on both sides"
            )
        found = tests.paired_difference(base, candidate, clusters, width=width, confidence=self.settings.confidence)
        return Difference(
            base=mean_of(base),
            candidate=mean_of(candidate),
            difference=found.difference,
            standard_error=found.standard_error,
            paired_error=found.task_error,
            interval=found.interval,
            p=found.p,
            tasks=len(base),
            groups=found.groups,
            reason=found.reason,
        )

    def _change(self) -> tuple[Array, float]:
        """The differences of the score, and by what to multiply them."""
        scale = scale_of(self.base.mean, self.candidate.mean)
        return self.candidate.mean / scale - self.base.mean / scale, scale

    def _within(self) -> tuple[float | None, float | None]:
        """Mean over tasks of s^2/K and of s^2, both sides summed; None where no task has repeats on both, or a reward is too large
        for a square."""
        repeated = (self.base.scored > 1) & (self.candidate.scored > 1)
        sides = [(side.variance[repeated], side.scored[repeated]) for side in (self.base, self.candidate)]
        if not repeated.any() or not all(np.isfinite(variance).all() for variance, _ in sides):
            return None, None
        removable = sum(mean_of(variance / scored) for variance, scored in sides)
        single = sum(mean_of(variance) for variance, _ in sides)
        return times(removable, 1.0), times(single, 1.0)


class _Columns:
    """One side's columns."""

    def __init__(self, table: pa.Table) -> None:
        self.scored = table["scored"].to_numpy()
        self.mean = table["mean"].to_numpy()
        self.pass_rate = table["passed"].to_numpy() / self.scored
        self.variance = pc.fill_null(table["variance"], np.nan).to_numpy()
