"""A candidate by itself: over all of its tasks, whether or not the base has them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.analysis.compare.differences import COSTS
from gymflow.analysis.compare.sides import Side
from gymflow.contracts.comparison import Alone
from gymflow.metrics.magnitudes import Array, mean_of


def alone(side: Side) -> list[Alone]:
    """The whole run of the agent first, then each slice of the side."""
    slices = [_alone(side.tasks.filter(pa.array(mask)), by, value) for (by, value), mask in side.masks.items()]
    return [_alone(side.tasks), *slices]


def _alone(tasks: pa.Table, by: str | None = None, value: str | None = None) -> Alone:
    """Means over tasks with a scored rollout, as in the profile; costs over those that report them."""
    count, planned = tasks["scored"].to_numpy(), int(pc.sum(tasks["planned"]).as_py() or 0)
    scored = count > 0
    return Alone(
        by=by,
        value=value,
        tasks=int(scored.sum()),
        score=_mean(pc.fill_null(tasks["mean"], np.nan).to_numpy()),
        pass_rate=_mean(tasks["passed"].to_numpy()[scored] / count[scored]),
        costs={name: _mean(pc.fill_null(tasks[name], np.nan).to_numpy()) for name in COSTS},
        coverage=int(count.sum()) / planned if planned else None,
    )


def _mean(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return mean_of(known) if len(known) else None
