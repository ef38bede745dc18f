"""A line of a run cut into slices of tasks: by tag, cluster, split, or any field of the dataset's rows."""

from collections.abc import Sequence

import duckdb
import numpy as np

from gymflow.contracts.profile import Slice
from gymflow.errors import InputError
from gymflow.metrics.intervals import mean_estimate
from gymflow.metrics.task_table import TaskTable
from gymflow.suggest import did_you_mean

COLUMNS = {"tag": "unnest(t.tags)", "cluster": "t.cluster", "split": "t.split"}
MOST_VALUES = 1000
"""Slices by a field with more different values than this are refused: they would be one task each."""


def members_of(
    connection: duckdb.DuckDBPyConnection, run_id: str, environment: str, agent: str, by: str
) -> dict[str, np.ndarray]:
    """Value -> mask over the tasks of a line, in the order of its `TaskTable`. Empty where no task of the line has one.

    Raises InputError for a name that no task of the run knows.
    """
    expression = COLUMNS.get(by) or _field(connection, run_id, by)
    found = connection.execute(
        f"""
        WITH listed AS (
            SELECT task_index, row_number() OVER (ORDER BY task_index) - 1 AS position
            FROM _per_task WHERE environment = $environment AND agent = $agent
        ),
        valued AS (
            SELECT position, {expression} AS value
            FROM listed JOIN (SELECT * FROM tasks WHERE run_id = $run_id) t USING (task_index)
        )
        SELECT value::VARCHAR AS value, list(position) FROM valued WHERE value IS NOT NULL GROUP BY ALL ORDER BY value
        """,
        {"run_id": run_id, "environment": environment, "agent": agent},
    ).fetchall()
    if len(found) > MOST_VALUES:
        raise InputError(f"--by {by}: {len(found)} different values; choose a field with at most {MOST_VALUES}")
    count = connection.execute(
        "SELECT count(*) FROM _per_task WHERE environment = ? AND agent = ?", [environment, agent]
    ).fetchall()[0][0]
    masks = {}
    for value, positions in found:
        masks[value] = mask = np.zeros(count, bool)
        mask[positions] = True
    return masks


def slice_of(
    table: TaskTable, mask: np.ndarray, by: str, value: str, bounds: tuple[float, float] | None, confidence: float
) -> Slice:
    """Score and pass rate of the tasks in a mask."""
    chosen = table.where(mask & table.has_score)
    independent = bool((chosen.scored == 1).all())

    def over(values: np.ndarray, within: tuple[float, float] | None) -> object:
        return mean_estimate(values, chosen.clusters, bounds=within, independent=independent, confidence=confidence)

    return Slice.model_validate(
        {
            "by": by,
            "value": value,
            "tasks": int(mask.sum()),
            "scored": int(chosen.scored.sum()),
            "score": over(chosen.mean, bounds),
            "pass_rate": over(chosen.pass_rate, (0.0, 1.0)),
        }
    )


def wanted(by: Sequence[str]) -> list[str]:
    """The names in `--by a,b --by c`, each once."""
    return list(dict.fromkeys(name.strip() for text in by for name in text.split(",") if name.strip()))


def _field(connection: duckdb.DuckDBPyConnection, run_id: str, name: str) -> str:
    """SQL for a field at the top level of the dataset's rows."""
    known = connection.execute(
        "SELECT DISTINCT unnest(json_keys(task)) AS name FROM tasks WHERE run_id = ? ORDER BY ALL", [run_id]
    ).fetchall()
    names = [field for (field,) in known]
    if name not in names:
        raise InputError(f"--by {name}: no task of {run_id} has it; {did_you_mean(name, [*COLUMNS, *names])}")
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    return f"json_extract_string(t.task, '{pointer.replace(chr(39), chr(39) * 2)}')"
