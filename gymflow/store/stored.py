"""Completed rollouts as rescoring reads them: evidence streamed in batches, text until a verifier looks at it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.trajectory import Trajectory
from gymflow.store.artifacts import Artifacts
from gymflow.store.encoding import ARTIFACT, BIG_INTEGER, resolve
from gymflow.store.journal import scan
from gymflow.store.layout import RunLayout, rollout_id
from gymflow.store.manifest import RunManifest
from gymflow.store.planned import TaskTable
from gymflow.store.records import parsed
from gymflow.store.state import consistent, read_state, segments
from gymflow.store.tables import SCHEMAS, Row, parse_line, rows_of, to_arrow
from gymflow.verifiers.evidence import Evidence

_ROWS = 512
_COLUMNS = SCHEMAS["evidence"].names[2:]
"""plan_index, seq, flags, trajectory, response, snapshot, artifacts."""
_PLANNED = ["task_index", "task_id", "environment", "agent"]
_STOP_REASONS = {reason.value: reason for reason in StopReason}
_NARROW = ["evidence_digest", "stop_reason"]


@dataclass(slots=True)
class StoredRollout:
    """A completed rollout as a verifier is handed it: evidence and task stay JSON text until they are read."""

    rollout_id: str
    plan_index: int
    task_index: int
    task_id: str
    environment: str
    agent: str
    evidence: Evidence
    evidence_digest: str
    tasks: TaskTable

    @property
    def task(self) -> dict[str, Any]:
        """The task row."""
        return self.tasks[self.task_index]


def stored_rollouts(
    layout: RunLayout, run_id: str, artifacts: Artifacts, batch_size: int
) -> Iterator[list[StoredRollout]]:
    """All completed rollouts of a run. What counts is decided by the first step; files that vanish later are held open."""
    completed, rollouts, bodies = consistent(layout, lambda manifest: _open(layout, manifest))
    plan = pq.read_table(layout.plan, columns=["plan_index", *_PLANNED])
    row_of_plan, row_of_seq = _positions(plan["plan_index"]), _positions(rollouts["seq"])
    plan, rollouts = plan.select(_PLANNED).combine_chunks(), rollouts.select(_NARROW).combine_chunks()
    tasks = TaskTable(layout)
    waiting: list[StoredRollout] = []
    for rows in bodies:
        rows = [row for row in rows if completed.get(row[0]) == row[1]]
        if not rows:
            continue
        planned = _rows(plan, row_of_plan[[row[0] for row in rows]])
        narrow = _rows(rollouts, row_of_seq[[row[1] for row in rows]])
        for (plan_index, _, flags, *texts), of_plan, (digest, reason) in zip(rows, planned, narrow, strict=True):
            task_index, task_id, environment, agent = of_plan
            trajectory, response, snapshot, named = _unfolded(texts, flags, artifacts)
            evidence = Evidence(
                response=response,
                trajectory=trajectory,
                snapshot=snapshot,
                artifacts=named,
                stop_reason=_STOP_REASONS.get(reason),
                read_artifact=artifacts.read,
            )
            waiting.append(
                StoredRollout(
                    rollout_id=rollout_id(run_id, plan_index),
                    plan_index=plan_index,
                    task_index=task_index,
                    task_id=task_id,
                    environment=environment,
                    agent=agent,
                    evidence=evidence,
                    evidence_digest=digest,
                    tasks=tasks,
                )
            )
        while len(waiting) >= batch_size:
            yield waiting[:batch_size]
            waiting = waiting[batch_size:]
    if waiting:
        yield waiting


def _open(layout: RunLayout, manifest: RunManifest) -> tuple[dict[int, int], pa.Table, Iterator[list[Row]]]:
    completed = read_state(layout, manifest).completed
    narrow = [
        pq.read_table(layout.part("rollouts", part.file), columns=["seq", *_NARROW])
        for part in manifest.parts.get("rollouts", ())
    ]
    files = [pq.ParquetFile(layout.part("evidence", part.file)) for part in manifest.parts.get("evidence", ())]
    tail = [line for path in segments(layout, manifest) for _, line in scan(path)]
    rows = [row for line in tail for found in rows_of(parse_line(line), ("rollouts",)) for row in found.rows]
    narrow.append(to_arrow("rollouts", rows).select(["seq", *_NARROW]))

    def bodies() -> Iterator[list[Row]]:
        for file in files:
            with file:
                for batch in file.iter_batches(_ROWS, columns=_COLUMNS, use_threads=False):
                    yield list(zip(*(batch[name].to_pylist() for name in _COLUMNS), strict=True))
        for start in range(0, len(tail), _ROWS):
            lines = map(parse_line, tail[start : start + _ROWS])
            yield [row[2:] for line in lines for found in rows_of(line, ("evidence",)) for row in found.rows]

    return completed, pa.concat_tables(narrow), bodies()


def _positions(column: pa.ChunkedArray) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Row by value, for a column of small whole numbers."""
    values = column.to_numpy()
    rows = np.zeros(int(values.max()) + 1 if len(values) else 0, dtype=np.int64)
    rows[values] = np.arange(len(values))
    return rows


def _rows(table: pa.Table, positions: "np.ndarray[Any, np.dtype[np.int64]]") -> Iterator[Row]:
    """Rows as tuples: one column at a time, which is several times as fast as a dict a row."""
    return zip(*(column.to_pylist() for column in table.take(positions).columns), strict=True)


def _unfolded(texts: list[Any], flags: list[str] | None, artifacts: Artifacts) -> list[Any]:
    """The four parts of the evidence: the texts themselves, parsed only where a text alone would mislead its reader."""
    if not flags or not (ARTIFACT in flags or BIG_INTEGER in flags):
        return texts
    values = [parsed(text, flags) for text in texts]
    if ARTIFACT in flags:
        values = [resolve(value, artifacts.read) for value in values]
    return [Trajectory.model_validate(values[0]), *values[1:]]
