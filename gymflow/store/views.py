"""A DuckDB connection over a store: every number in the project is a query on these views.

Which files and journal lines count is decided when the connection is opened, from the manifests; it does not follow a run that
goes on. The tails of runs that are being written stay in the journal's form until a query asks for that table.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from gymflow.contracts.finding import Finding
from gymflow.contracts.run import RunDocument
from gymflow.errors import InputError
from gymflow.store.catalog import Store
from gymflow.store.decisions import decisions_of
from gymflow.store.journal import scan
from gymflow.store.layout import RunLayout
from gymflow.store.lease import being_written
from gymflow.store.manifest import RunManifest
from gymflow.store.plan import PLAN, TASKS
from gymflow.store.remote import away, fetch
from gymflow.store.state import consistent, header, segments
from gymflow.store.tables import SCHEMAS, parse_line, rows_of, to_arrow

_TEXT = pa.string()
_SETS = pa.schema(
    [
        ("run_id", _TEXT),
        ("verdict_set", _TEXT),
        ("position", pa.int64()),
        ("created_at", pa.float64()),
        ("refers_to", _TEXT),
        ("is_current", pa.bool_()),
    ]
)
_RUNS = pa.schema(
    [
        ("run_id", _TEXT),
        ("name", _TEXT),
        ("created_at", pa.timestamp("us", "UTC")),
        ("environments", pa.list_(_TEXT)),
        ("agents", pa.list_(_TEXT)),
        ("models", pa.list_(_TEXT)),
        ("current_verdict_set", _TEXT),
        ("being_written", pa.bool_()),
        ("sampling_fingerprint", pa.map_(_TEXT, _TEXT)),
        ("scoring_fingerprint", pa.map_(_TEXT, _TEXT)),
        ("versions", pa.map_(_TEXT, _TEXT)),
        ("config", _TEXT),
    ]
)
_FINDINGS = pa.schema([(name, _TEXT) for name in Finding.model_fields])
_DECISIONS = pa.schema(
    [
        ("decision_id", _TEXT),
        ("run_id", _TEXT),
        ("verdict_set", _TEXT),
        ("environment", _TEXT),
        ("agent", _TEXT),
        ("intervention", _TEXT),
        ("rank", pa.int64()),
        ("choices", pa.int64()),
        ("gain", pa.float64()),
        ("score", pa.float64()),
        ("rollouts", pa.int64()),
        ("supported_by", pa.list_(_TEXT)),
        ("decided_at", pa.float64()),
        ("decided_by", _TEXT),
        ("reason", _TEXT),
        ("tested_by", pa.list_(_TEXT)),
    ]
)
_BATCH = 512


@dataclass(slots=True)
class _Snapshot:
    """What of one run counts."""

    run_id: str
    layout: RunLayout
    manifest: RunManifest
    tail: list[bytes] = field(default_factory=list)
    superseded: set[int] = field(default_factory=set)
    superseded_verdicts: list[dict[str, Any]] = field(default_factory=list)


class _Stream:
    """An Arrow stream that is produced anew, batch by batch, whenever a query scans it."""

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterable[pa.RecordBatch]]) -> None:
        self._schema = schema
        self._batches = batches

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self._schema, iter(self._batches()))
        return reader.__arrow_c_stream__(requested_schema)


def connect(root: str | Path, runs: Iterable[str] | None = None) -> duckdb.DuckDBPyConnection:
    """A connection with the views `runs`, `plan`, `tasks`, `rollouts`, `attempts`, `evidence`, `model_calls`, `turns`,
    `tool_calls`, `tokens`, `verdict_sets`, `verdicts`, `outcomes`, `findings` and `decisions`, over all runs or those named.

    Raises InputError for a name that is no run's.
    """
    return open_views(root, runs, _native)


Source = Callable[[duckdb.DuckDBPyConnection, str, pa.Schema, list[Path]], str]
"""Makes the parts of a table scannable on a connection; returns what to select from."""


def open_views(
    root: str | Path, runs: Iterable[str] | None, source: Source, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """The connection of `connect`, with another way to get at the parts."""
    store = Store(root)
    if runs is None:
        documents = {document.run_id: document for document in store.runs()}
    else:
        documents = {run_id: store.document(run_id) for run_id in map(store.resolve_run_id, runs)}
    store.fetch_rows(documents)
    snapshots = [_snapshot(store.layout.run(run_id), run_id) for run_id in documents]
    connection = duckdb.connect(":memory:", config=config or {})
    _create_tables(connection, snapshots, source)
    _register(connection, "_runs", _RUNS, lambda: [_run_row(documents[s.run_id], s) for s in snapshots])
    _register(connection, "findings", _FINDINGS, lambda: [row for s in snapshots for row in _findings(s.layout)])
    _register(connection, "decisions", _DECISIONS, lambda: list(_decisions(documents, snapshots)))
    sql = resources(__package__)
    for name in ("views.sql", "tokens.sql", "judge_calls.sql"):
        connection.execute(sql.joinpath(name).read_text())
    return connection


def _native(connection: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema, paths: list[Path]) -> str:
    listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{listed}])"


def _snapshot(layout: RunLayout, run_id: str) -> _Snapshot:
    def take(manifest: RunManifest) -> _Snapshot:
        snapshot = _Snapshot(run_id, layout, manifest, superseded=set(manifest.superseded))
        snapshot.superseded_verdicts = [dead.model_dump() for dead in manifest.superseded_verdicts]
        for path in segments(layout, manifest):
            for _, line in scan(path):
                head = header(line)
                if head["kind"] == "verdicts":
                    snapshot.superseded_verdicts += head["supersedes"]
                elif head["supersedes"] is not None:
                    snapshot.superseded.add(head["supersedes"])
                snapshot.tail.append(line)
        return snapshot

    return consistent(layout, take)


def _create_tables(connection: duckdb.DuckDBPyConnection, snapshots: list[_Snapshot], source: Source) -> None:
    for name, schema, paths in (
        ("plan", PLAN, [s.layout.plan for s in snapshots]),
        ("tasks", TASKS, [s.layout.tasks for s in snapshots]),
    ):
        connection.execute(f"create view {name} as {_scan_of(connection, name, schema, paths, [], source)}")
    dead = _dead(connection, snapshots)
    for table, schema in SCHEMAS.items():
        paths = [s.layout.part(table, part.file) for s in snapshots for part in s.manifest.parts.get(table, ())]
        name = {"tokens": "_tokens", "verdicts": "_verdicts"}.get(table, table)
        rows = _scan_of(connection, table, schema, paths, [s for s in snapshots if s.tail], source)
        connection.execute(f"create view {name} as {rows}{dead.get(table, '')}")
    sets = [row for s in snapshots for row in _set_rows(s)]
    _register(connection, "verdict_sets", _SETS, lambda: sets)
    referring = any(row["refers_to"] for row in sets)
    connection.execute(_VERDICTS_WITH_REFERENCES if referring else _VERDICTS)


def _scan_of(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    schema: pa.Schema,
    paths: list[Path],
    tails: list[_Snapshot],
    source: Source,
) -> str:
    """A select over the parts of a table and, where there are any, the journals beyond them."""
    elsewhere = away(paths)
    here = [path for path in paths if path not in elsewhere]
    sources = [source(connection, table, schema, here)] if here else []
    if elsewhere:
        connection.register(f"_away_{table}", _Stream(schema, lambda: _fetched_batches(sorted(elsewhere), schema)))
        sources.append(f"_away_{table}")
    if tails or not paths:
        connection.register(f"_tail_{table}", _Stream(schema, lambda: _tail_batches(table, tails)))
        sources.append(f"_tail_{table}")
    return f"select * from ({' union all by name '.join(f'select * from {name}' for name in sources)})"


def _fetched_batches(paths: list[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of parts that are fetched because a query asks for them."""
    from pyarrow.dataset import dataset  # takes a quarter of a second, and few queries ask for such

    fetch(paths)
    yield from dataset([str(path) for path in paths], schema=schema).to_batches(batch_size=_BATCH)


def _tail_batches(table: str, snapshots: list[_Snapshot]) -> Iterator[pa.RecordBatch]:
    for snapshot in snapshots:
        for start in range(0, len(snapshot.tail), _BATCH):
            rows = [
                row
                for text in snapshot.tail[start : start + _BATCH]
                for found in rows_of(parse_line(text), (table,))
                for row in found.rows
            ]
            yield from to_arrow(table, rows).to_batches()


def _dead(connection: duckdb.DuckDBPyConnection, snapshots: list[_Snapshot]) -> dict[str, str]:
    """By table, the end of the select that leaves superseded rows out; most stores have none."""
    ends: dict[str, str] = {}
    rollouts = [(s.run_id, seq) for s in snapshots for seq in s.superseded]
    if rollouts:
        connection.execute("create table _superseded (run_id varchar, seq bigint)")
        connection.executemany("insert into _superseded values (?, ?)", rollouts)
        ends = dict.fromkeys(
            ("rollouts", "evidence", "model_calls", "tokens"), " anti join _superseded using (run_id, seq)"
        )
    verdicts = [(d["rollout_id"], d["verdict_set"], d["seq"]) for s in snapshots for d in s.superseded_verdicts]
    if verdicts:
        connection.execute("create table _superseded_verdicts (rollout_id varchar, verdict_set varchar, seq bigint)")
        connection.executemany("insert into _superseded_verdicts values (?, ?, ?)", verdicts)
        ends["verdicts"] = " anti join _superseded_verdicts using (rollout_id, verdict_set, seq)"
    return ends


def _set_rows(snapshot: _Snapshot) -> list[dict[str, Any]]:
    sets = snapshot.manifest.verdict_sets
    return [
        {
            "run_id": snapshot.run_id,
            "verdict_set": found.name,
            "position": position,
            "created_at": found.created_at,
            "refers_to": found.refers_to,
            "is_current": position == len(sets) - 1,
        }
        for position, found in enumerate(sets)
    ]


def _run_row(document: RunDocument, snapshot: _Snapshot) -> dict[str, Any]:
    sets = snapshot.manifest.verdict_sets
    return {
        "run_id": document.run_id,
        "name": document.name,
        "created_at": int(document.created_at * 1e6),
        "environments": sorted(document.environments),
        "agents": sorted({agent for agents in document.agents.values() for agent in agents}),
        "models": sorted(document.identities),
        "current_verdict_set": sets[-1].name if sets else None,
        "being_written": being_written(snapshot.layout.lease),
        "sampling_fingerprint": sorted(document.fingerprint.sampling.items()),
        "scoring_fingerprint": sorted(document.fingerprint.scoring.items()),
        "versions": sorted(document.versions.items()),
        "config": document.config.model_dump_json(),
    }


def _findings(layout: RunLayout) -> Iterator[dict[str, Any]]:
    for path in sorted(layout.reports.glob("health*.json")):
        try:
            report = orjson.loads(path.read_bytes())
            findings = report["findings"] if isinstance(report, dict) else report
        except (orjson.JSONDecodeError, KeyError) as error:
            raise InputError(f"{path}: no health report ({error}); run the health check again.") from None
        for finding in findings:
            yield {name: finding.get(name) for name in _FINDINGS.names}


def _decisions(documents: dict[str, RunDocument], snapshots: list[_Snapshot]) -> Iterator[dict[str, Any]]:
    """With the runs that test them, of those that the connection is on."""
    for snapshot in snapshots:
        for one in decisions_of(snapshot.layout):
            testing = [run_id for run_id, document in documents.items() if document.tests_decision == one.decision_id]
            yield one.model_dump(exclude={"schema_version"}) | {"tested_by": testing}


def _register(
    connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, rows: Callable[[], list[dict[str, Any]]]
) -> None:
    # Only a query of the view reads what it is of: a damaged report is in nobody else's way.
    def batches() -> Iterator[pa.RecordBatch]:
        yield from pa.Table.from_pylist(rows(), schema).to_batches()

    connection.register(name, _Stream(schema, batches))


_VERDICTS = """
create view verdicts as
select v.*, verdict_set as judged_in, s.is_current
from _verdicts v join verdict_sets s using (run_id, verdict_set)
"""

_VERDICTS_WITH_REFERENCES = """
create view verdicts as
with recursive chain as (
    select run_id, verdict_set, is_current, verdict_set as source, refers_to, 0 as depth from verdict_sets
    union all
    select chain.run_id, chain.verdict_set, chain.is_current, s.verdict_set, s.refers_to, depth + 1
    from chain join verdict_sets s on s.run_id = chain.run_id and s.verdict_set = chain.refers_to
)
select v.* replace (chain.verdict_set as verdict_set), v.verdict_set as judged_in, chain.is_current
from _verdicts v join chain on chain.run_id = v.run_id and chain.source = v.verdict_set
qualify row_number() over (partition by v.run_id, chain.verdict_set, v.rollout_id order by depth) = 1
"""
