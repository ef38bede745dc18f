"""Reading one run: what its manifest commits, and the journal beyond it."""

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.contracts.outcome import Status
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.contracts.trajectory import ModelCall
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.store import plan as plans
from gymflow.store import records
from gymflow.store.artifacts import Artifacts
from gymflow.store.journal import Fault, scan
from gymflow.store.layout import RunLayout, plan_index_of, rollout_id
from gymflow.store.lease import being_written
from gymflow.store.manifest import RunManifest, read_document, read_manifest
from gymflow.store.state import RunState, consistent, header, next_seq, read_state, segments
from gymflow.store.stored import StoredRollout, stored_rollouts
from gymflow.store.tables import SCHEMAS, parse_line, rows_of, to_arrow

_BATCH = 512


class RunReader:
    """Reads a run, also while another process writes it: every call sees what is durable then."""

    def __init__(self, layout: RunLayout, run_id: str, artifacts: Artifacts) -> None:
        self.run_id = run_id
        self.layout = layout
        self._artifacts = artifacts

    @cached_property
    def document(self) -> RunDocument:
        """`run.json`."""
        return read_document(self.layout)

    @property
    def manifest(self) -> RunManifest:
        """The manifest in force."""
        return read_manifest(self.layout)

    @property
    def verdict_sets(self) -> list[VerdictSet]:
        """In the order in which they were last scored into; the last is current."""
        return list(self.manifest.verdict_sets)

    @property
    def being_written(self) -> bool:
        """Whether a process has the run's lease now."""
        return being_written(self.layout.lease)

    def state(self) -> RunState:
        """What is durable, with the sequence numbers of the records that count."""
        return consistent(self.layout, lambda manifest: read_state(self.layout, manifest))

    def next_seq(self) -> int:
        """The sequence number that the next line will have: it grows with all that is stored. Reads no parts."""
        return consistent(self.layout, lambda manifest: next_seq(self.layout, manifest))

    def completed(self) -> dict[int, Status]:
        """Status by plan index of every rollout with a durable record. Reads no bodies."""
        state = self.state()
        return dict.fromkeys(state.failed, Status.FAILED) | dict.fromkeys(state.completed, Status.COMPLETED)

    def completed_indices(self) -> set[int]:
        """Plan indices of the completed rollouts. Reads no bodies."""
        return set(self.state().completed)

    def faults(self) -> list[Fault]:
        """Damage in the run's journal, past and present; empty for a healthy run."""
        past = [Fault(**fault.model_dump()) for fault in self.manifest.faults]
        return past + self.state().faults

    def plan(self) -> Iterator[PlannedRollout]:
        """The plan, in order."""
        return plans.planned_rollouts(self.layout)

    def planned(self) -> int:
        """How many rollouts are planned."""
        return int(pq.read_metadata(self.layout.plan).num_rows)

    def pending(self) -> list[PlannedRollout]:
        """Planned rollouts that are not completed: missing ones and failed ones."""
        completed = self.state().completed
        return [row for row in self.plan() if row.plan_index not in completed]

    def tasks(self) -> Iterator[PlannedTask]:
        """The run's tasks, in order."""
        return plans.planned_tasks(self.layout)

    def stored(self, *, batch_size: int = _BATCH) -> Iterator[list[StoredRollout]]:
        """All completed rollouts with evidence and task, in batches; bodies are streamed, not held."""
        return stored_rollouts(self.layout, self.run_id, self._artifacts, batch_size)

    def record(self, plan_index: int) -> RolloutRecord:
        """Everything of one rollout. Raises InputError where nothing of it is durable."""
        for record in self.records([plan_index]):
            return record
        raise InputError(f"run {self.run_id} holds nothing of rollout {plan_index} (yet).")

    def records(self, plan_indices: Collection[int]) -> Iterator[RolloutRecord]:
        """Everything of several rollouts, in the order in which they were stored; those without a record are left out."""
        wanted = set(plan_indices)
        state = self.state()
        seqs = sorted(
            seq for held_ in (state.completed, state.failed) for index, seq in held_.items() if index in wanted
        )
        for start in range(0, len(seqs), _BATCH):
            chosen = seqs[start : start + _BATCH]
            yield from consistent(self.layout, lambda manifest, chosen=chosen: self._records(manifest, chosen))  # type: ignore[misc]

    def calls(self, plan_index: int) -> list[ModelCall]:
        """The model calls of one rollout, in order."""
        return self.record(plan_index).model_calls

    def verdicts(self, plan_index: int) -> list[VerdictRecord]:
        """The verdicts on one rollout, one a set, in the order in which they were given."""
        return self.verdicts_of([plan_index]).get(plan_index, [])

    def verdicts_of(self, plan_indices: Collection[int]) -> dict[int, list[VerdictRecord]]:
        """The same for several rollouts, by plan index; those without a verdict are left out."""
        return consistent(self.layout, lambda manifest: self._verdicts(manifest, plan_indices))

    def read_artifact(self, digest: str) -> bytes:
        """An artifact of the store."""
        return self._artifacts.read(digest)

    def _tables(self, table: str, manifest: RunManifest, **options: Any) -> Iterator[pa.Table]:
        """A table's parts, then its rows in the journal."""
        for part in manifest.parts.get(table, ()):
            yield pq.read_table(self.layout.part(table, part.file), **options)
        for path in segments(self.layout, manifest):
            rows = [
                row for _, text in scan(path) for found in rows_of(parse_line(text), (table,)) for row in found.rows
            ]
            yield to_arrow(table, rows)

    def _records(self, manifest: RunManifest, seqs: list[int]) -> list[RolloutRecord]:
        found: dict[int, RolloutRecord] = {}
        wanted = set(seqs)
        for path in segments(self.layout, manifest):
            for _, text in scan(path):
                if header(text)["seq"] in wanted and (line := parse_line(text))["kind"] == "rollout":
                    found[line["seq"]] = records.record_of_line(line, self._artifacts.read)
        missing = [seq for seq in seqs if seq not in found]
        rows = {table: self._rows_by_seq(table, manifest, missing) for table in SCHEMAS if table != "verdicts"}
        for seq in missing:
            if seq in rows["rollouts"]:
                found[seq] = records.record_of(
                    rows["rollouts"][seq][0],
                    rows["attempts"].get(seq, ()),
                    rows["evidence"][seq][0],
                    rows["model_calls"].get(seq, ()),
                    rows["tokens"].get(seq, ()),
                    self._artifacts.read,
                )
        return [found[seq] for seq in seqs if seq in found]

    def _rows_by_seq(self, table: str, manifest: RunManifest, seqs: list[int]) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = {}
        for part in manifest.parts.get(table, ()) if seqs else ():
            for row in pq.read_table(self.layout.part(table, part.file), filters=[("seq", "in", seqs)]).to_pylist():
                found.setdefault(row["seq"], []).append(row)
        return found

    def _verdicts(self, manifest: RunManifest, plan_indices: Collection[int]) -> dict[int, list[VerdictRecord]]:
        wanted = pa.array([rollout_id(self.run_id, index) for index in plan_indices], pa.string())
        latest: dict[tuple[int, str], dict[str, Any]] = {}
        for table in self._tables("verdicts", manifest):
            for row in table.filter(pc.is_in(table["rollout_id"], wanted)).to_pylist():
                latest[plan_index_of(row["rollout_id"]), row["verdict_set"]] = row
        found: dict[int, list[VerdictRecord]] = {}
        for (index, _), row in latest.items():
            found.setdefault(index, []).append(records.verdict_of(row, self._artifacts.read))
        return found
