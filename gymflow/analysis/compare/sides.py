"""One side of a comparison: a run, or one agent of it, task by task."""

from collections.abc import Sequence
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
from gymflow.store.memory import release


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
    verdict_sets: dict[str, VerdictSet] = field(default_factory=dict)
    """All that the run has, by name."""


def load_side(
    connection: duckdb.DuckDBPyConnection, store: Store, selector: str, by: list[str], verdict_set: str | None
) -> Side:
    """`RUN` or `RUN:AGENT`, in a verdict set (default: the run's current one). `connection` has the run's views, among others.

    Raises InputError for an unknown run, agent or verdict set, and for a run of several agents of which none is chosen.
    """
    name, colon, agent = selector.partition(":")
    reader = store.run(name)
    current = _verdict_set(reader, verdict_set)
    open_task_tables(connection, reader.run_id, current.name if current else None)
    chosen = _agent(connection, reader, agent if colon else None)
    connection.execute("DELETE FROM _per_task WHERE agent <> ?", [chosen])
    tasks = task_costs(connection, reader.run_id)
    release(connection)
    masks = _masks(connection, reader.run_id, chosen, tasks, by)
    sets = {one.name: one for one in reader.verdict_sets}
    return Side(reader.run_id, chosen, reader.document, current, tasks, masks, sets)


def sides_of(store: Store, base: str, candidates: Sequence[str]) -> tuple[str, list[str]]:
    """Selectors of the base and of what is compared with it: where only a run is named, its first agent and the others.

    Raises InputError where there is nothing to compare with.
    """
    if candidates:
        return base, list(candidates)
    name, colon, agent = base.partition(":")
    reader = store.run(name)
    agents = sorted({one for specs in reader.document.agents.values() for one in specs})
    if len(agents) < 2:
        raise InputError(f"run {reader.run_id} has a single agent: name the runs to compare with it")
    first = agent if colon else agents[0]
    return f"{reader.run_id}:{first}", [f"{reader.run_id}:{one}" for one in agents if one != first]


def _verdict_set(reader: RunReader, given: str | None) -> VerdictSet | None:
    sets = reader.verdict_sets
    if given is None:
        return sets[-1] if sets else None
    found = [one for one in sets if one.name == given] or [one for one in sets if given and one.name.startswith(given)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(one.name for one in sets) or "none"
    problem = "several verdict sets that begin with" if found else "no verdict set"
    raise InputError(f"run {reader.run_id} has {problem} {given!r}; there are: {names}")


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
