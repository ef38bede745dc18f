"""What a store holds, at a glance: its runs, the tasks of one, the repeats of a task. Read from narrow columns, never from bodies."""

from collections import defaultdict
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from gymflow import keys
from gymflow.contracts.model import ModelIdentity
from gymflow.contracts.report import RepeatLine, RunScore, RunSummary, TaskLine
from gymflow.contracts.run import RunDocument
from gymflow.store import RunReader, Store, connect

COUNTS = ("planned", "scored", "unverified", "failed", "missing")


def run_summaries(store: Store) -> list[RunSummary]:
    """All runs of a store, newest first."""
    documents = store.runs()
    with connect(store.root, runs=[document.run_id for document in documents]) as connection:
        lines = defaultdict(list)
        for row in rows(connection, _sql("runs"), {}):
            lines[row["run_id"]].append(row)
    return [_summary(document, store.reader(document.run_id), lines[document.run_id]) for document in documents]


def task_lines(store: Store, run_id: str, verdict_set: str | None) -> list[TaskLine]:
    """The tasks of a run by agent, the worst first."""
    with connect(store.root, runs=[run_id]) as connection:
        found = rows(connection, _sql("tasks"), {"run_id": run_id, "verdict_set": verdict_set})
    return [TaskLine(**row) for row in found]


def repeat_lines(
    store: Store, run_id: str, verdict_set: str | None, *, environment: str, task_id: str
) -> list[RepeatLine]:
    """The planned rollouts of a task, by agent and repeat."""
    parameters = {"run_id": run_id, "verdict_set": verdict_set, "environment": environment, "task_id": task_id}
    with connect(store.root, runs=[run_id]) as connection:
        found = rows(connection, _sql("repeats"), parameters)
    return [RepeatLine(**row) for row in found]


def rows(connection: Any, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """A query's rows as objects."""
    cursor = connection.execute(query, parameters)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def model_name(identity: ModelIdentity) -> str:
    """`provider:name@revision`, without what is not set."""
    name = f"{identity.provider}:{identity.model}" if identity.model else identity.provider
    return f"{name}@{identity.revision}" if identity.revision else name


def _summary(document: RunDocument, reader: RunReader, lines: list[dict[str, Any]]) -> RunSummary:
    sets = reader.verdict_sets
    return RunSummary(
        run_id=document.run_id,
        name=document.name,
        created_at=datetime.fromtimestamp(document.created_at, UTC),
        environments=list(document.environments),
        models=[
            model_name(document.identities[name])
            for name in document.config.models_sampled
            if name in document.identities
        ],
        fingerprint=keys.digest(document.fingerprint.sampling),
        verdict_set=sets[-1].name if sets else None,
        verdict_sets=len(sets),
        being_written=reader.being_written,
        scores=[RunScore(**{name: line[name] for name in RunScore.model_fields}) for line in lines],
        **{name: sum(line[name] for line in lines) for name in COUNTS},
    )


def _sql(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()
