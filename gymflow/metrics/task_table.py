"""What a run came to, task by task: the columns that every estimate over tasks is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.metrics.intervals import Array
from gymflow.store.memory import release

_COUNTS = ("planned", "scored", "unverified", "failed", "missing", "passed")
ROLLOUTS_AT_ONCE = 250_000
"""Rollouts of the tasks that are looked at together, in some 60 MB; every further slice reads the run's narrow columns once more."""


@dataclass(frozen=True, slots=True)
class TaskTable:
    """The tasks of one environment and agent, in dataset order. Arrays have one element per task; `mean` and `variance` are NaN where
    undefined; `clusters` numbers the groups of tasks that are one draw, None where no task names one."""

    environment: str
    agent: str
    planned: Array
    scored: Array
    unverified: Array
    failed: Array
    missing: Array
    passed: Array
    mean: Array
    variance: Array
    clusters: Array | None

    @property
    def has_score(self) -> Array:
        """Mask of the tasks with a scored rollout; the others are in no mean."""
        return self.scored > 0

    @property
    def pass_rate(self) -> Array:
        """Share of scored rollouts that passed; NaN without one."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.passed / self.scored)

    def where(self, mask: Array) -> "TaskTable":
        """The tasks of a mask."""
        arrays = {name: getattr(self, name)[mask] for name in (*_COUNTS, "mean", "variance")}
        clusters = None if self.clusters is None else self.clusters[mask]
        return TaskTable(self.environment, self.agent, **arrays, clusters=clusters)


def open_task_tables(
    connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None, gathered: Sequence[str] = ()
) -> None:
    """Make the temporary table `_per_task` (per_task.sql) on a connection of the store, and one for each of the `gathered` queries over
    `_planned`, by its name. `_planned` (planned.sql) holds one slice of tasks at a time, in the end the last one."""
    [(tasks, rollouts)] = connection.execute(
        "SELECT coalesce(max(task_index), 0) + 1, count(*) FROM plan WHERE run_id = ?", [run_id]
    ).fetchall()
    step = max(1, ROLLOUTS_AT_ONCE * tasks // max(rollouts, 1))
    for first in range(0, tasks, step):
        given = {"run_id": run_id, "verdict_set": verdict_set, "first": first, "end": first + step}
        _execute(connection, _sql("planned"), given)
        for name in ("per_task", *gathered):
            into = f"INSERT INTO _{name}" if first else f"CREATE OR REPLACE TEMP TABLE _{name} AS"
            _execute(connection, f"{into}\n{_sql(name)}", given)
        release(connection)


def _execute(connection: duckdb.DuckDBPyConnection, text: str, given: dict[str, Any]) -> None:
    for statement in duckdb.extract_statements(text):
        connection.execute(statement, {name: given[name] for name in statement.named_parameters})


def _sql(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()


def task_tables(connection: duckdb.DuckDBPyConnection) -> list[TaskTable]:
    """One table for each environment and agent, in the order of their names."""
    lines = connection.execute("SELECT DISTINCT environment, agent FROM _per_task ORDER BY ALL").fetchall()
    return [_task_table(connection, *line) for line in lines]


def _task_table(connection: duckdb.DuckDBPyConnection, environment: str, agent: str) -> TaskTable:
    columns = connection.sql(
        f"SELECT {', '.join(_COUNTS)}, mean, variance, cluster FROM _per_task WHERE environment = ? AND agent = ?",
        params=[environment, agent],
    ).to_arrow_table()
    return TaskTable(
        environment,
        agent,
        **{name: columns[name].to_numpy() for name in _COUNTS},
        **{name: pc.fill_null(columns[name], np.nan).to_numpy() for name in ("mean", "variance")},
        clusters=numbered(columns["cluster"].combine_chunks()),
    )


def numbered(clusters: pa.Array) -> Array | None:
    """A number for each cluster; a task without one is a cluster of its own."""
    if clusters.null_count == len(clusters):
        return None
    codes = pc.fill_null(clusters.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max() + 1 + np.arange(alone.sum())
    return np.asarray(codes)
