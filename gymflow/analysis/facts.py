"""The facts of a run: tables in DuckDB that health and diagnosis query instead of the evidence itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import duckdb

from gymflow.analysis.judging import manifest_as_judged
from gymflow.errors import InputError
from gymflow.registry import Registry
from gymflow.runtime.components import verifier_parameters
from gymflow.store import RunReader, Store, connect
from gymflow.store.memory import release

ROLLOUTS_AT_ONCE = 25_000
"""Rollouts whose rows are joined together."""


@contextmanager
def facts(store: Store, run_id: str, verdict_set: str | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection on the run's views with the schema `facts` (see facts.sql), in a verdict set (default: the current one)."""
    reader = store.run(run_id)
    with connect(store.root, runs=[reader.run_id]) as connection:
        connection.execute("set preserve_insertion_order = false; set enable_progress_bar = false")
        # Memory that a query is done with goes back to the system at once, before Python code asks for its own.
        connection.execute("set allocator_background_threads = true; set allocator_flush_threshold = '1MB'")
        # A database of its own, since only one that is asked to packs what it holds in memory.
        connection.execute("attach ':memory:' as facts (compress)")
        connection.execute("create table facts.ranges (environment varchar, low double, high double)")
        for name, environment in reader.document.environments.items():
            low, high = environment.manifest.reward_range
            connection.execute("insert into facts.ranges values (?, ?, ?)", [name, low, high])
        judged = verdict_set or current_set(reader)
        parameters = {"run_id": reader.run_id, "verdict_set": judged}
        for statement in duckdb.extract_statements(_sql("facts")):
            named = statement.named_parameters
            connection.execute(statement, {name: parameters[name] for name in named})
            release(connection)
        _gather_rollouts(connection, reader.run_id, judged)
        _tell_who_extracts(connection, reader, judged)
        yield connection


def _gather_rollouts(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None) -> None:
    """Make facts.rollouts, slice by slice."""
    [(end,)] = connection.execute(
        "select coalesce(max(plan_index), 0) + 1 from plan where run_id = ?", [run_id]
    ).fetchall()
    for first in range(0, end, ROLLOUTS_AT_ONCE):
        into = "insert into facts.rollouts" if first else "create table facts.rollouts as"
        given = {"run_id": run_id, "verdict_set": verdict_set, "first": first, "end": first + ROLLOUTS_AT_ONCE}
        connection.execute(f"{into}\n{_sql('facts_rollouts')}", given)
        release(connection)


def _sql(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()


def current_set(reader: RunReader) -> str | None:
    """The name of the run's current verdict set; None where it was never scored."""
    sets = reader.verdict_sets
    return sets[-1].name if sets else None


def _tell_who_extracts(connection: duckdb.DuckDBPyConnection, reader: RunReader, verdict_set: str | None) -> None:
    """Where no rollout of an environment has an extracted answer, only its verifier can tell whether one could have had it."""
    silent = connection.execute(
        "select distinct environment from facts.rollouts where outcome = 'scored' and not extracts"
    ).fetchall()
    for (environment,) in silent:
        if _extracts(reader, environment, verdict_set):
            connection.execute("update facts.rollouts set extracts = true where environment = ?", [environment])


def _extracts(reader: RunReader, environment: str, verdict_set: str | None) -> bool:
    registry, reference = Registry(), reader.document.environments[environment].reference
    manifest = manifest_as_judged(reader, environment, verdict_set)
    try:
        entry = registry.environment(reference) if reference else None
        verifier = registry.verifier_class(manifest.verifier.name, entry)
        return verifier(verifier_parameters(verifier, manifest)).extracts
    except InputError:  # The plugin is not here any more: its evidence can still be looked at.
        return False
