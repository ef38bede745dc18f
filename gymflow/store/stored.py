"""Completed rollouts as rescoring reads them: evidence streamed in batches, text until a verifier looks at it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.trajectory import Trajectory
from gymflow.store.artifacts import Artifacts
from gymflow.store.encoding import ARTIFACT, BIG_INTEGER, resolve
from gymflow.store.journal import scan
from gymflow.store.layout import RunLayout, rollout_id
from gymflow.store.manifest import RunManifest
from gymflow.store.planned import Rows, TaskTable
from gymflow.store.records import parsed
from gymflow.store.state import completed_seqs, consistent, segments
from gymflow.store.tables import SCHEMAS, Row, parse_line, rows_of
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
    bodies = consistent(layout, lambda manifest: _open(layout, manifest))
    plan, tasks = Rows(layout.plan, "plan_index", _PLANNED), TaskTable(layout)
    waiting: list[StoredRollout] = []
    for rows in bodies:
        for (plan_index, _, flags, *texts), (digest, reason) in rows:
            task_index, task_id, environment, agent = plan[plan_index]
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


def _open(layout: RunLayout, manifest: RunManifest) -> Iterator[list[tuple[Row, Row]]]:
    """Of every completed rollout _COLUMNS and _NARROW, from the parts and then from the journal."""
    tail = [line for path in segments(layout, manifest) for _, line in scan(path)]
    completed = completed_seqs(layout, manifest, tail)
    rollouts, evidence = (
        [pq.ParquetFile(layout.part(table, part.file)) for part in manifest.parts.get(table, ())]
        for table in ("rollouts", "evidence")
    )

    def of_parts(files: list[pq.ParquetFile], columns: list[str]) -> Iterator[list[Row]]:
        for file in files:
            with file:
                for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False):
                    index, seq = (batch[name].to_numpy() for name in ("plan_index", "seq"))
                    counting = batch.filter(pa.array(completed[index] == seq))
                    yield list(zip(*(counting[name].to_pylist() for name in columns), strict=True))

    def bodies() -> Iterator[list[tuple[Row, Row]]]:
        # Both tables have been written in the same order, more or less: few rows of one wait for their other half.
        narrow = (row for rows in of_parts(rollouts, ["plan_index", "seq", *_NARROW]) for row in rows)
        waiting: dict[int, Row] = {}
        for rows in of_parts(evidence, _COLUMNS):
            for _, seq, *_ in rows:
                while seq not in waiting:
                    _, other, *found = next(narrow)
                    waiting[other] = tuple(found)
            yield [(row, waiting.pop(row[1])) for row in rows]
        for start in range(0, len(tail), _ROWS):
            lines = [line for line in map(parse_line, tail[start : start + _ROWS]) if "record" in line]
            yield [
                (body[2:], (rollout["evidence_digest"], rollout["stop_reason"]))
                for line in lines
                if completed[(rollout := line["record"]["rollout"])["plan_index"]] == line["seq"]
                for found in rows_of(line, ("evidence",))
                for body in found.rows
            ]

    return bodies()


def _unfolded(texts: list[Any], flags: list[str] | None, artifacts: Artifacts) -> list[Any]:
    """The four parts of the evidence: the texts themselves, parsed only where a text alone would mislead its reader."""
    if not flags or not (ARTIFACT in flags or BIG_INTEGER in flags):
        return texts
    values = [parsed(text, flags) for text in texts]
    if ARTIFACT in flags:
        values = [resolve(value, artifacts.read) for value in values]
    return [Trajectory.model_validate(values[0]), *values[1:]]
