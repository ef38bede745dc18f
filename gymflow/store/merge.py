"""Several runs of one configuration, such as the shards of a plan, as one run.

The merged run is a function of the set of its sources: their order changes no byte of it, and merging again changes nothing. Of a
rollout that several sources hold one sample counts, see merge.sql; which, and that there were others, the report says.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gymflow.contracts.merge import Conflict, MergeReport, MissingRollouts
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.errors import InputError
from gymflow.store.catalog import Store
from gymflow.store.files import Files
from gymflow.store.layout import RunLayout, check_run_id
from gymflow.store.lease import Lease
from gymflow.store.manifest import RunManifest, write_manifest
from gymflow.store.parts import PartWriter
from gymflow.store.plan import PLAN, TASKS
from gymflow.store.tables import SCHEMAS
from gymflow.store.views import connect

BATCH = 512
"""Rows in memory at once: bodies may be long."""

# By table: what is read, in which order within a rollout.
_FROM = {
    "rollouts": ("rollouts", ()),
    "evidence": ("evidence", ()),
    "model_calls": ("model_calls", ("call",)),
    "tokens": ("_tokens", ("call",)),
    "verdicts": ("verdicts", ("verdict_set",)),
}


def merge_runs(store: Store, runs: Sequence[str], into: str, files: Files | None = None) -> MergeReport:
    """Write run `into` from the runs, and from those it was merged from before.

    Raises InputError where the runs were sampled under different fingerprints, one of them is being written, or `into` is a run
    that holds something of its own; RunLocked where another process merges into it or writes it.
    """
    files = files or Files()
    into = check_run_id(into)
    named = {store.resolve_run_id(run) for run in runs}
    # Beside the run, since one that is merged holds nothing of who made it.
    merging = Lease(store.layout.runs / f".new-{into}.lock", into)
    try:
        documents = [store.document(run_id) for run_id in _sources(store, named, into)]
        _check(store, documents)
        return _merged(store, documents, into, files)
    finally:
        merging.release(remove=True)


def _merged(store: Store, documents: list[RunDocument], into: str, files: Files) -> MergeReport:
    target = store.layout.run(into)
    lease = Lease(target.lease, into) if store.holds(into) else None
    draft = store.layout.run(f".new-{into}.merge")
    shutil.rmtree(draft.folder, ignore_errors=True)
    try:
        if lease is not None:
            lease.claim()
        files.make_folder(draft.journal)
        report = _write(store, documents, into, draft, files)
        if lease is None and target.document.exists():
            raise InputError(f"run {into} was created meanwhile; merge into a run id that is not taken")
        _replace(target, draft, files)
        store.made(into)
    except OSError as error:
        raise InputError(f"{target.folder}: the merged run could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(draft.folder, ignore_errors=True)
        if lease is not None:
            lease.release()
    return report


def _sources(store: Store, runs: set[str], into: str) -> list[str]:
    """The runs that really sampled: a merged run stands for its own sources while these are all there."""
    known = {document.run_id: document for document in store.runs()}
    named = set(runs)
    if into in known:
        _check_target(store, known[into])
        named.add(into)
    found: set[str] = set()
    for run_id in named:
        parents = known[run_id].merged_from
        if parents and all(parent in known for parent in parents) and _derived(store, known[run_id]):
            found.update(parents)
        else:
            found.add(run_id)
    return sorted(found)


def _check_target(store: Store, document: RunDocument) -> None:
    if not document.merged_from:
        raise InputError(f"run {document.run_id} was sampled itself; merge into a run id that is not taken")
    if not _derived(store, document):
        raise InputError(
            f"run {document.run_id} holds rollouts or verdict sets of its own since it was merged; name it as one of the "
            "runs, and merge into another id"
        )


def _derived(store: Store, document: RunDocument) -> bool:
    """Whether a merged run holds nothing but what its sources do."""
    if not document.merged_from:
        return False
    with connect(store.root, runs=[document.run_id]) as connection:
        own = connection.execute("SELECT count(*) FROM rollouts WHERE sampled_in = run_id").fetchall()[0][0]
    sets = {one.name for one in store.run(document.run_id).verdict_sets}
    return not own and all(
        sets <= {one.name for one in store.run(parent).verdict_sets}
        for parent in document.merged_from
        if store.layout.run(parent).document.exists()
    )


def _check(store: Store, documents: list[RunDocument]) -> None:
    first = documents[0]
    for document in documents:
        if store.run(document.run_id).being_written:
            raise InputError(f"run {document.run_id} is being written; merge when it has ended")
        if differing := first.fingerprint.differing(document.fingerprint):
            raise InputError(
                f"runs {first.run_id} and {document.run_id} were sampled with another {', '.join(differing)}: they are "
                "not parts of one run; see gym eval compare"
            )


def _write(store: Store, documents: list[RunDocument], into: str, draft: RunLayout, files: Files) -> MergeReport:
    run_ids = [document.run_id for document in documents]
    lead = _lead(store, documents)
    with connect(store.root, runs=run_ids) as connection:
        connection.execute("SET temp_directory = ?", [str(draft.folder / "spill")])
        for statement in duckdb.extract_statements(resources(__package__).joinpath("merge.sql").read_text()):
            given = {"chunk_size": lead.config.limits.chunk_size}
            connection.execute(statement, {name: given[name] for name in statement.named_parameters})
        sets, left_out = _verdict_sets(store, run_ids)
        _write_plan(connection, into, draft)
        manifest = _write_parts(connection, into, sets, draft, files)
        report = _report(connection, documents, into, sets, left_out)
    shutil.rmtree(draft.folder / "spill", ignore_errors=True)
    write_manifest(draft, manifest, files)
    files.make_folder(draft.reports)
    files.replace(draft.reports / "merge.json", report.model_dump_json(indent=1).encode())
    document = _document(lead, documents, into)
    files.replace(draft.document, document.model_dump_json(indent=1).encode())
    return report


def _lead(store: Store, documents: list[RunDocument]) -> RunDocument:
    """Whose configuration the merged run has: that of the largest plan."""
    return max(documents, key=lambda document: (store.run(document.run_id).planned(), document.run_id))


def _document(lead: RunDocument, documents: list[RunDocument], into: str) -> RunDocument:
    return lead.model_copy(
        update={
            "run_id": into,
            "created_at": min(document.created_at for document in documents),
            "config": lead.config.model_copy(update={"shard": None}),
            "merged_from": [document.run_id for document in documents],
            "accepted_drift": sorted({drift for document in documents for drift in document.accepted_drift}),
        }
    )


def _verdict_sets(store: Store, run_ids: list[str]) -> tuple[list[VerdictSet], dict[str, list[str]]]:
    """The sets that every run has, oldest first, and the others with the runs that lack them."""
    held = {run_id: {one.name: one for one in store.run(run_id).verdict_sets} for run_id in run_ids}
    names = sorted({name for sets in held.values() for name in sets})
    common, left_out = [], {}
    for name in names:
        lacking = [run_id for run_id in run_ids if name not in held[run_id]]
        if lacking:
            left_out[name] = lacking
        else:
            several = [held[run_id][name] for run_id in run_ids]
            created = min(one.created_at for one in several)
            common.append(several[0].model_copy(update={"created_at": created, "refers_to": None}))
    return sorted(common, key=lambda one: (one.created_at, one.name)), left_out


def _write_plan(connection: duckdb.DuckDBPyConnection, into: str, draft: RunLayout) -> None:
    tasks = """
        SELECT t.* REPLACE ($into AS run_id, m.new_index AS task_index)
        FROM tasks t JOIN _task m USING (run_id, task_index)
        QUALIFY row_number() OVER (PARTITION BY m.new_index ORDER BY run_id) = 1
        ORDER BY m.new_index
    """
    plan = """
        SELECT p.* REPLACE ($into AS run_id, w.new_index AS plan_index, m.new_index AS task_index, w.chunk AS chunk)
        FROM plan p JOIN _row w USING (environment, agent, rollout_key) JOIN _task m USING (run_id, task_index)
        QUALIFY row_number() OVER (PARTITION BY w.new_index ORDER BY run_id) = 1
        ORDER BY w.new_index
    """
    for path, schema, query in ((draft.tasks, TASKS, tasks), (draft.plan, PLAN, plan)):
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in _batches(connection, query, {"into": into}, schema):
                writer.write_table(batch)


def _write_parts(
    connection: duckdb.DuckDBPyConnection, into: str, sets: list[VerdictSet], draft: RunLayout, files: Files
) -> RunManifest:
    parts = {}
    for table, schema in SCHEMAS.items():
        writer = PartWriter(draft, table, 0, files)
        for batch in _batches(connection, *_query(table, into, sets), schema):
            writer.add(batch)
        parts[table] = writer.finish()
    [(most,)] = connection.execute("SELECT coalesce(max(new_index), -1) FROM _row").fetchall()
    [(old,)] = connection.execute("SELECT count(*) FROM attempts").fetchall()
    return RunManifest(
        parts={table: found for table, found in parts.items() if found},
        next_part=max((len(found) for found in parts.values()), default=0),
        next_seq=most + 1 + old,
        verdict_sets=sets,
    )


def _query(table: str, into: str, sets: list[VerdictSet]) -> tuple[str, dict[str, Any]]:
    """Rows of the samples that count under their new names. The sequence number of a record is its plan index; attempts of
    records that were run again, of which nothing else is kept, are numbered behind them."""
    given: dict[str, Any] = {"into": into}
    named = "$into AS run_id, $into || '-' || s.new_index AS rollout_id"
    if table == "attempts":
        return (
            f"""
            SELECT a.* REPLACE (
                {named},
                CASE WHEN a.seq = s.seq THEN s.new_index
                     ELSE (SELECT max(new_index) FROM _row) + dense_rank() OVER (ORDER BY s.new_index, a.seq) END AS seq
            )
            FROM attempts a
            JOIN _sample s ON s.run_id = a.run_id AND a.rollout_id = s.run_id || '-' || s.plan_index AND s.place = 1
            ORDER BY s.new_index, a.seq, a.attempt
            """,
            given,
        )
    source, order = _FROM[table]
    indexed = ", s.new_index AS plan_index" if "plan_index" in SCHEMAS[table].names else ""
    where = ""
    if table == "verdicts":
        where, given["sets"] = "WHERE list_contains($sets, t.verdict_set)", [one.name for one in sets]
        join = "t.rollout_id = s.run_id || '-' || s.plan_index"
    else:
        join = "t.seq = s.seq"
    columns = ", ".join(["s.new_index", *(f"t.{column}" for column in order)])
    return (
        f"""
        SELECT t.* REPLACE ({named}, s.new_index AS seq{indexed})
        FROM {source} t JOIN _sample s ON s.run_id = t.run_id AND {join} AND s.place = 1
        {where} ORDER BY {columns}
        """,
        given,
    )


def _batches(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, Any], schema: pa.Schema
) -> Iterator[pa.Table]:
    for batch in connection.sql(query, params=parameters).arrow(BATCH):
        yield pa.table([batch[field.name].cast(field.type) for field in schema], schema)


def _report(
    connection: duckdb.DuckDBPyConnection,
    documents: list[RunDocument],
    into: str,
    sets: list[VerdictSet],
    left_out: dict[str, list[str]],
) -> MergeReport:
    [(planned, completed, failed)] = connection.execute(
        """
        SELECT count(*), count(*) FILTER (WHERE s.status = 'completed'), count(*) FILTER (WHERE s.status = 'failed')
        FROM _row LEFT JOIN (FROM _sample WHERE place = 1) s USING (new_index)
        """
    ).fetchall()
    [(equal,)] = connection.execute(
        """
        SELECT count(*) FROM (
            SELECT new_index FROM _sample WHERE status = 'completed' GROUP BY new_index
            HAVING count(*) > 1 AND count(DISTINCT evidence_digest) = 1
        )
        """
    ).fetchall()
    conflicts = connection.execute(
        """
        SELECT environment, agent, task_id, repeat, min(run_id) FILTER (WHERE place = 1),
               list(run_id ORDER BY run_id) FILTER (WHERE place > 1 AND evidence_digest <> kept)
        FROM (
            SELECT s.*, first_value(evidence_digest) OVER (PARTITION BY new_index ORDER BY place) AS kept
            FROM _sample s WHERE status = 'completed'
        ) s JOIN plan p USING (run_id, plan_index)
        GROUP BY new_index, environment, agent, task_id, repeat
        HAVING count(DISTINCT evidence_digest) > 1
        ORDER BY new_index
        """
    ).fetchall()
    missing = connection.execute(
        """
        SELECT p.environment, p.agent, p.task_id, list(DISTINCT p.repeat ORDER BY p.repeat)
        FROM _row w JOIN plan p USING (environment, agent, rollout_key)
        WHERE w.new_index NOT IN (SELECT new_index FROM _sample WHERE status = 'completed')
        GROUP BY p.environment, p.agent, p.task_id ORDER BY ALL
        """
    ).fetchall()
    return MergeReport(
        run_id=into,
        sources=[document.run_id for document in documents],
        planned=planned,
        completed=completed,
        failed=failed,
        equal=equal,
        conflicts=[
            Conflict(environment=place, agent=agent, task_id=task, repeat=repeat, kept=kept, left_out=other)
            for place, agent, task, repeat, kept, other in conflicts
        ],
        missing=[
            MissingRollouts(environment=place, agent=agent, task_id=task, repeats=repeats)
            for place, agent, task, repeats in missing
        ],
        missing_shards=_missing_shards(documents),
        verdict_sets=[one.name for one in sets],
        left_out_verdict_sets=left_out,
    )


def _missing_shards(documents: Iterable[RunDocument]) -> list[str]:
    shards = [document.config.shard for document in documents]
    if any(shard is None for shard in shards):
        return []
    there = {(shard.index, shard.count) for shard in shards if shard is not None}
    counts = sorted({count for _, count in there})
    return [f"{index}/{count}" for count in counts for index in range(count) if (index, count) not in there]


def _replace(target: RunLayout, draft: RunLayout, files: Files) -> None:
    """Put the draft in the target's place; a target that is the same already stays, with the reports on it. A crash between the
    renames leaves no target, and merging again makes it."""
    if target.folder.exists() and _content(target) == _content(draft):
        return
    aside = target.folder.with_name(f".old-{target.folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    if target.folder.exists():
        files.rename(target.folder, aside)
    files.rename(draft.folder, target.folder)
    shutil.rmtree(aside, ignore_errors=True)


def _content(layout: RunLayout) -> dict[str, str]:
    """Digests of the files that make up a run, by their place in it."""
    paths = [layout.document, layout.plan, layout.tasks, layout.manifest, *sorted(layout.folder.glob("parts/*/*"))]
    return {str(path.relative_to(layout.folder)): _digest(path) for path in paths}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
