"""One side of a comparison: a run, or one agent of it, task by task."""

from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.errors import InputError
from gymflow.metrics import slices
from gymflow.metrics.intervals import Array
from gymflow.metrics.profile import task_costs
from gymflow.metrics.task_table import open_task_tables
from gymflow.store import RunReader, Store


@dataclass(slots=True)
class Side:
    """What a run holds of the agent that is compared. `tasks`: a row per environment and task, see task_costs.sql; `masks`: by (name,
    value) of a slice, over these rows."""

    run_id: str
    agent: str
    document: RunDocument
    verdict_set: VerdictSet | None
    tasks: pa.Table
    masks: dict[tuple[str, str], Array] = field(default_factory=dict)


def load_side(connection: duckdb.DuckDBPyConnection, store: Store, selector: str, by: list[str]) -> Side:
    """`RUN` or `RUN:AGENT`, in the run's current verdict set. `connection` has the run's views, among others.

    Raises InputError for an unknown run or agent, and for a run of several agents of which none is chosen.
    """
    name, colon, agent = selector.partition(":")
    reader = store.run(name)
    current = reader.verdict_sets[-1] if reader.verdict_sets else None
    open_task_tables(connection, reader.run_id, current.name if current else None)
    chosen = _agent(connection, reader, agent if colon else None)
    connection.execute("DELETE FROM _per_task WHERE agent <> ?", [chosen])
    tasks = task_costs(connection, reader.run_id)
    masks = _masks(connection, reader.run_id, chosen, tasks, by)
    return Side(reader.run_id, chosen, reader.document, current, tasks, masks)


def _agent(connection: duckdb.DuckDBPyConnection, reader: RunReader, given: str | None) -> str:
    known = [name for (name,) in connection.execute("SELECT DISTINCT agent FROM _per_task ORDER BY ALL").fetchall()]
    if given is None and len(known) == 1:
        return str(known[0])
    if given in known:
        return str(given)
    choices = ", ".join(f"{reader.run_id}:{name}" for name in known)
    if given is None:
        raise InputError(f"run {reader.run_id} has several agents; name the one to compare: {choices}")
    raise InputError(f"run {reader.run_id} has no agent {given!r}; there are: {choices}")


def _masks(
    connection: duckdb.DuckDBPyConnection, run_id: str, agent: str, tasks: pa.Table, by: list[str]
) -> dict[tuple[str, str], Array]:
    masks: dict[tuple[str, str], Array] = {}
    for environment in tasks["environment"].unique().to_pylist():
        rows = np.flatnonzero(pc.equal(tasks["environment"], environment).to_numpy())
        if environment_name := environment.partition(":")[0]:
            masks.setdefault(("environment", environment_name), np.zeros(len(tasks), bool))[rows] = True
        for name in by:
            for value, mask in slices.members_of(connection, run_id, environment, agent, name).items():
                masks.setdefault((name, value), np.zeros(len(tasks), bool))[rows[mask]] = True
    return masks
