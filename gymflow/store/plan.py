"""`plan.parquet` and `tasks.parquet`: what a run consists of. Rows are only ever appended."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gymflow.contracts.base import SCHEMA_VERSION
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.errors import InputError
from gymflow.store.encoding import dumps, loads
from gymflow.store.files import Files
from gymflow.store.layout import RunLayout

_TEXT, _INT = pa.string(), pa.int64()

PLAN = pa.schema(
    [
        ("run_id", _TEXT),
        ("plan_index", _INT),
        ("task_index", _INT),
        ("task_key", _TEXT),
        ("task_id", _TEXT),
        ("environment", _TEXT),
        ("split", _TEXT),
        ("agent", _TEXT),
        ("repeat", _INT),
        ("seed", _INT),
        ("chunk", _INT),
        ("rollout_key", _TEXT),
    ]
)
TASKS = pa.schema(
    [
        ("run_id", _TEXT),
        ("task_index", _INT),
        ("task_key", _TEXT),
        ("row_digest", _TEXT),
        ("environment", _TEXT),
        ("split", _TEXT),
        ("task_id", _TEXT),
        ("tags", pa.list_(_TEXT)),
        ("cluster", _TEXT),
        ("flags", pa.list_(_TEXT)),
        ("task", _TEXT),
    ]
)
PLAN, TASKS = (schema.with_metadata({"schema_version": str(SCHEMA_VERSION)}) for schema in (PLAN, TASKS))
_BATCH = 4096
_GROUP_BYTES = 4 << 20
"""About what the columns of a row group take in memory, at most: whoever looks rows up holds some row groups."""


def write_plan(
    layout: RunLayout, run_id: str, tasks: Iterable[PlannedTask], plan: Iterable[PlannedRollout], files: Files
) -> None:
    """Write both files of a new run."""
    _write(layout.tasks, TASKS, [], _task_rows(run_id, tasks), files)
    _write(layout.plan, PLAN, [], _plan_rows(run_id, plan), files)


def extend_plan(
    layout: RunLayout, run_id: str, tasks: Iterable[PlannedTask], plan: Iterable[PlannedRollout], files: Files
) -> None:
    """Append rows. Tasks are put in place first, so that no planned rollout ever refers to one that is not there; a crash
    in between leaves tasks that nothing refers to, which the next extension finds and keeps.

    Raises InputError for a plan index that is planned already, or a task index that stands for another task.
    """
    known_tasks, known_plan = pq.read_table(layout.tasks), pq.read_table(layout.plan)
    digests = dict(zip(known_tasks["task_index"].to_pylist(), known_tasks["row_digest"].to_pylist(), strict=True))
    indices = set(known_plan["plan_index"].to_pylist())

    def new_tasks() -> Iterator[PlannedTask]:
        for task in tasks:
            if (known := digests.get(task.task_index)) is None:
                yield task
            elif known != task.row_digest:
                raise InputError(f"{layout.tasks}: task {task.task_index} is planned already, with another content.")

    def new_rollouts() -> Iterator[PlannedRollout]:
        for rollout in plan:
            if rollout.plan_index in indices:
                raise InputError(f"{layout.plan}: rollout {rollout.plan_index} is planned already.")
            yield rollout

    _write(layout.tasks, TASKS, [known_tasks], _task_rows(run_id, new_tasks()), files)
    _write(layout.plan, PLAN, [known_plan], _plan_rows(run_id, new_rollouts()), files)


def planned_rollouts(layout: RunLayout) -> Iterator[PlannedRollout]:
    """Rows of the plan, in order."""
    with pq.ParquetFile(layout.plan) as file:
        for batch in file.iter_batches(_BATCH, columns=[name for name in PLAN.names if name != "run_id"]):
            for row in batch.to_pylist():
                yield PlannedRollout.model_construct(**row)


def planned_tasks(layout: RunLayout) -> Iterator[PlannedTask]:
    """Tasks of the run, in order."""
    with pq.ParquetFile(layout.tasks) as file:
        for batch in file.iter_batches(_BATCH):
            for row in batch.to_pylist():
                yield PlannedTask.model_construct(
                    **{name: row[name] for name in PlannedTask.model_fields if name != "task"},
                    task=loads(row["task"], row["flags"]),
                )


def _plan_rows(run_id: str, plan: Iterable[PlannedRollout]) -> Iterator[tuple[Any, ...]]:
    names = PLAN.names[1:]
    return ((run_id, *(getattr(row, name) for name in names)) for row in plan)


def _task_rows(run_id: str, tasks: Iterable[PlannedTask]) -> Iterator[tuple[Any, ...]]:
    for row in tasks:
        text, flags = dumps(row.task)
        yield (
            *(run_id, row.task_index, row.task_key, row.row_digest, row.environment, row.split, row.task_id),
            *(row.tags, row.cluster, flags, text),
        )


def _write(path: Path, schema: pa.Schema, kept: list[pa.Table], rows: Iterator[tuple[Any, ...]], files: Files) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for table in kept:
                _write_groups(writer, table.cast(schema))
            while batch := [row for _, row in zip(range(_BATCH), rows, strict=False)]:
                columns = [
                    pa.array(column, type=field.type)
                    for column, field in zip(zip(*batch, strict=True), schema, strict=True)
                ]
                _write_groups(writer, pa.table(columns, schema))
        files.sync_file(temporary)
        files.rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_groups(writer: pq.ParquetWriter, table: pa.Table) -> None:
    fitting = _GROUP_BYTES * table.num_rows // max(1, table.nbytes)
    writer.write_table(table, row_group_size=max(1, min(_BATCH, fitting)))
