"""The one writer of a run: makes rollouts and verdicts durable, and keeps the journal short."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from gymflow.contracts.base import SCHEMA_VERSION
from gymflow.contracts.outcome import Status
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import VerdictSet
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.store import encoding, manifest, parts
from gymflow.store.artifacts import Artifacts
from gymflow.store.files import Files, disk_error
from gymflow.store.journal import Journal, frame
from gymflow.store.layout import RunLayout, rollout_id
from gymflow.store.lease import Lease
from gymflow.store.manifest import RecordedFault, RunManifest, write_manifest
from gymflow.store.state import consistent, read_state, segments
from gymflow.store.verdict_index import VerdictIndex
from gymflow.store.verdict_rows import VerdictRow, VerdictRows, encoded

log = logging.getLogger(__name__)

ROLL_BYTES = 64 << 20
"""Journal bytes after which a segment is converted to parts while the run goes on."""
_VERDICTS_PER_LINE = 1000


class RunWriter:
    """Open with `Store.writer(run_id)`, as an async context manager.

    Leaving the context normally waits for what was committed and gives the lease back; an exception gives it back at once.
    Neither ends the run: `finish` does, when its caller finds it complete.
    """

    def __init__(self, run_layout: RunLayout, run_id: str, artifacts: Artifacts, files: Files) -> None:
        self.run_id = run_id
        self._layout = run_layout
        self._artifacts = artifacts
        self._files = files
        self._manifest = RunManifest()
        self._manifest_lock = asyncio.Lock()
        self._rolling: asyncio.Task[None] | None = None
        self._segment = 0

    async def __aenter__(self) -> Self:
        self._lease = Lease(self._layout.lease, self.run_id)
        try:
            await asyncio.to_thread(self._open)
        except BaseException:
            self._lease.release()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self.abort()

    def status(self, plan_index: int) -> Status | None:
        """What the run holds for a row of its plan; None: nothing durable."""
        return self._state.status(plan_index)

    async def commit(
        self, record: RolloutRecord, verdicts: Sequence[VerdictRecord] = (), *, again: bool = False
    ) -> None:
        """Make a rollout and its verdicts durable, as one: when this returns, a crash loses neither.

        A failed rollout may be followed by a later record of the same plan index, which takes its place; so may a completed one
        that has gone on since, which `again` says. Raises ValueError for any other second record, TypeError for evidence that
        has no JSON form, and InputError when the disk does not take it (the run cannot go on then; what was acknowledged is safe).
        """
        rollout = record.rollout
        index = rollout.plan_index
        if rollout.rollout_id != rollout_id(self.run_id, index):
            raise ValueError(f"rollout {rollout.rollout_id} of run {rollout.run_id} committed to run {self.run_id}")
        if (index in self._state.completed and not again) or index in self._in_flight:
            raise ValueError(f"rollout {rollout.rollout_id} is durable already")
        self._check_sets(verdicts)
        judged = encoded(verdicts)
        body, flags = encoding.dumps(record, judged.artifacts, loose=_loose(record))
        seq, supersedes = self._take_seq(), self._state.seq(index)
        head = {
            "schema_version": SCHEMA_VERSION,
            "seq": seq,
            "kind": "rollout",
            "plan_index": index,
            "status": rollout.status,
            "supersedes": supersedes,
            "flags": flags,
        }
        members = [orjson.dumps(head)[:-1], b',"record":', body, b',"verdicts":', *_members(judged)]
        self._in_flight.add(index)

        def acknowledge(durable: bool) -> None:
            self._in_flight.discard(index)
            if durable:
                self._state.add(index, seq, rollout.status, supersedes)
                for row in judged.rows:
                    self._verdicts.add(row.verdict_set, index, seq, row.scored)

        await self._append(b"".join(members)[1:], judged.artifacts, acknowledge)

    async def commit_verdicts(self, records: Iterable[VerdictRecord]) -> int:
        """Make verdicts of stored rollouts durable; returns how many were new. As `commit_verdict_rows`."""
        return await self.commit_verdict_rows(encoded(records))

    async def commit_verdict_rows(self, verdicts: VerdictRows) -> int:
        """Make verdicts of stored rollouts durable; returns how many were new.

        A set holds one verdict a rollout: a row whose rollout has a reward in its set already is left out, so that rescoring
        again changes nothing; a verdict that failed is replaced.
        """
        self._check_sets(verdicts.rows)
        for name in {row.verdict_set for row in verdicts.rows if not self._verdicts.knows(row.verdict_set)}:
            await self._load_verdicts(name)
        wanted = [row for row in verdicts.rows if self._verdicts.wants(row.verdict_set, row.plan_index)]
        for start in range(0, len(wanted), _VERDICTS_PER_LINE):
            lined = VerdictRows(wanted[start : start + _VERDICTS_PER_LINE], verdicts.artifacts)
            await self._commit_verdict_line(lined)
        return len(wanted)

    @property
    def verdict_sets(self) -> list[VerdictSet]:
        """In the order in which they were last scored into; the last is current."""
        return list(self._manifest.verdict_sets)

    async def add_verdict_set(self, verdict_set: VerdictSet) -> None:
        """Announce a set before its verdicts, and make it current. One that exists stays as it is; raises InputError where it was
        judged by something else."""
        others = [known for known in self._manifest.verdict_sets if known.name != verdict_set.name]
        for known in self._manifest.verdict_sets:
            if known.name == verdict_set.name:
                if known.judged != verdict_set.judged:
                    raise InputError(f"verdict set {known.name} of run {self.run_id} was judged by another verifier.")
                verdict_set = known
        if [*others, verdict_set] == self._manifest.verdict_sets:
            return
        try:
            async with self._manifest_lock:
                await self._publish(verdict_sets=[*others, verdict_set])
        except OSError as error:
            raise disk_error(self._layout.manifest, error) from error

    async def put_artifact(self, data: bytes) -> str:
        """Store a file by its content, durably; returns the digest for `EvidenceRecord.artifacts`."""
        try:
            return await asyncio.to_thread(self._artifacts.put, data)
        except OSError as error:
            raise disk_error(self._layout.folder, error) from error

    async def roll(self) -> None:
        """Convert the journal so far to Parquet parts, in a thread, while commits go on."""
        if self._rolling is None:
            self._start_rolling()
        assert self._rolling is not None
        await asyncio.shield(self._rolling)

    async def finish(self) -> None:
        """Convert what is left of the journal and merge small parts. The run can still be resumed and extended."""
        try:
            if self._rolling is not None:
                await self.roll()
            await self.roll()
            async with self._manifest_lock:
                await self._merge(self._manifest)
        except OSError as error:
            raise disk_error(self._layout.folder, error) from error

    async def close(self) -> None:
        """Wait for what was committed, then give the lease back. Idempotent. Where the store is on a bucket, wait for that to have
        it, too, or to have refused it, which is warned of."""
        try:
            await self._journal.drain()
        finally:
            await self.abort()
        await self._lease.uploaded()

    async def abort(self) -> None:
        """Give the lease back without waiting; what was acknowledged is durable. Idempotent."""
        if self._rolling is not None:
            await asyncio.wait([self._rolling])
        await asyncio.to_thread(self._journal.close)
        self._lease.release()

    def _open(self) -> None:
        self._lease.claim()
        self._manifest, self._state = consistent(self._layout, lambda found: (found, read_state(self._layout, found)))
        self._clean()
        self._files.make_folder(self._layout.journal)
        known = segments(self._layout, self._manifest)
        self._segment = int(known[-1].stem) if known else self._manifest.journal_from
        self._journal = Journal(self._layout.journal, self._files)
        self._journal.open(self._layout.segment(self._segment))
        for fault in self._state.faults:
            log.warning("%s: %d damaged bytes at %d: %s", fault.segment, fault.length, fault.offset, fault.reason)
        self._seq = self._state.next_seq
        self._in_flight: set[int] = set()
        self._verdicts = VerdictIndex(self._layout)

    def _take_seq(self) -> int:
        self._seq += 1
        return self._seq - 1

    async def _append(self, members: bytes, artifacts: encoding.Artifacts, acknowledge: Callable[[bool], None]) -> None:
        """Once submitted, a line's fate is told to `acknowledge` whether or not the caller is cancelled meanwhile."""
        if artifacts:
            try:
                await asyncio.to_thread(self._put_all, artifacts)
            except BaseException as error:
                acknowledge(False)
                if isinstance(error, OSError):
                    raise disk_error(self._layout.folder, error) from error
                raise
        await self._journal.submit(frame(members), acknowledge).wait()
        if self._rolling is None and self._journal.size >= ROLL_BYTES:
            self._start_rolling()

    def _put_all(self, artifacts: encoding.Artifacts) -> None:
        for data in artifacts.values():
            self._artifacts.put(data)

    def _check_sets(self, rows: Iterable[VerdictRecord | VerdictRow]) -> None:
        if unknown := {row.verdict_set for row in rows} - {known.name for known in self._manifest.verdict_sets}:
            raise ValueError(
                f"verdict sets {sorted(unknown)} of run {self.run_id} were not announced (add_verdict_set)"
            )

    async def scored(self, verdict_set: str) -> set[int]:
        """Plan indices of the rollouts that have a reward in a set."""
        if not self._verdicts.knows(verdict_set):
            await self._load_verdicts(verdict_set)
        return self._verdicts.all_scored(verdict_set)

    async def _load_verdicts(self, verdict_set: str) -> None:
        async with self._manifest_lock:
            await asyncio.to_thread(self._verdicts.load, verdict_set, self._manifest)

    async def _commit_verdict_line(self, verdicts: VerdictRows) -> None:
        rows = verdicts.rows
        seq = self._take_seq()
        superseded = []
        for row in rows:
            earlier = self._verdicts.failed(row.verdict_set, row.plan_index)
            if earlier is not None:
                rollout = rollout_id(self.run_id, row.plan_index)
                superseded.append({"rollout_id": rollout, "verdict_set": row.verdict_set, "seq": earlier})
        head = {"schema_version": SCHEMA_VERSION, "seq": seq, "kind": "verdicts", "supersedes": superseded}
        members = [orjson.dumps(head)[:-1], b',"verdicts":', *_members(verdicts)]

        def acknowledge(durable: bool) -> None:
            if durable:
                self._state.superseded_verdicts += [manifest.DeadVerdict(**dead) for dead in superseded]
            for row in rows:
                self._verdicts.decide(row.verdict_set, row.plan_index, seq if durable else None, row.scored)

        await self._append(b"".join(members)[1:], verdicts.artifacts, acknowledge)

    def _start_rolling(self) -> None:
        self._rolling = asyncio.create_task(self._roll())
        self._rolling.add_done_callback(self._rolled)

    def _rolled(self, done: "asyncio.Task[None]") -> None:
        self._rolling = None
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("run %s: the journal could not be converted and stays as it is: %s", self.run_id, error)

    async def _roll(self) -> None:
        if self._journal.size == 0 and self._segment == self._manifest.journal_from:
            return
        self._segment += 1
        await self._journal.rotate(self._layout.segment(self._segment))
        async with self._manifest_lock:
            before = self._manifest
            paths = [path for path in segments(self._layout, before) if int(path.stem) < self._segment]
            superseded = frozenset(self._state.superseded)
            seq = self._seq
            converted = await asyncio.to_thread(
                parts.convert, self._layout, paths, before.next_part, superseded, self._files
            )
            found = converted.parts
            await self._publish(
                parts={table: [*before.parts.get(table, []), *found[table]] for table in found},
                next_part=before.next_part + max(len(parts_of_table) for parts_of_table in found.values()),
                journal_from=self._segment,
                next_seq=seq,
                superseded=sorted(self._state.superseded - converted.dropped),
                superseded_verdicts=list(self._state.superseded_verdicts),
                faults=[*before.faults, *(RecordedFault(**asdict(fault)) for fault in converted.faults)],
            )
            self._state.superseded -= converted.dropped
            await asyncio.to_thread(self._retire, paths, {fault.segment for fault in converted.faults})

    def _retire(self, paths: Sequence[Path], damaged: set[str]) -> None:
        for path in paths:
            if path.name in damaged:
                self._files.rename(path, path.with_suffix(".damaged"))
            else:
                self._files.remove(path)

    async def _merge(self, before: RunManifest) -> None:
        dead, dead_verdicts = set(before.superseded), set(before.superseded_verdicts)

        def merge() -> dict[str, list[manifest.Part]]:
            return {
                table: parts.merge(self._layout, table, committed, before.next_part, dead, dead_verdicts, self._files)
                for table, committed in before.parts.items()
            }

        merged = await asyncio.to_thread(merge)
        await self._publish(
            parts=merged,
            next_part=before.next_part + max(map(len, merged.values()), default=0),
            superseded=sorted(self._state.superseded - dead),
            superseded_verdicts=[gone for gone in self._state.superseded_verdicts if gone not in dead_verdicts],
            finished_at=time.time(),
        )
        self._state.superseded -= dead
        self._state.superseded_verdicts = [
            gone for gone in self._state.superseded_verdicts if gone not in dead_verdicts
        ]
        await asyncio.to_thread(self._clean)

    def _clean(self) -> None:
        for path in manifest.unreferenced(self._layout, self._manifest):
            self._files.remove(path)

    async def _publish(self, **changes: Any) -> None:
        changed = self._manifest.model_copy(update=changes)
        await asyncio.to_thread(write_manifest, self._layout, changed, self._files)
        self._manifest = changed


def _members(verdicts: VerdictRows) -> list[bytes]:
    """The value of a line's `verdicts`, and the member `verdict_flags` where any verdict has flags."""
    flags = verdicts.flags
    return [verdicts.text] if flags is None else [verdicts.text, b',"verdict_flags":', orjson.dumps(flags)]


def _loose(record: RolloutRecord) -> list[Any]:
    """Where a rollout can hold a number that JSON cannot keep: everything that is not made by the engine itself."""
    values: list[Any] = [record.evidence.response, record.evidence.snapshot, record.evidence.trajectory.start]
    for call in record.model_calls:
        values += (call.new_input, call.parameters, call.output)
        if call.tokens is not None:
            values.append(call.tokens.logprobs)
    values += [turn.step for turn in record.evidence.trajectory.turns]
    return values
