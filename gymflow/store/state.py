"""What a run holds: decided from the narrow columns of its parts and the first members of its journal lines alone."""

import errno
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.contracts.outcome import Status
from gymflow.errors import InputError
from gymflow.store.journal import Fault, scan
from gymflow.store.layout import RunLayout
from gymflow.store.manifest import DeadVerdict, RunManifest, read_manifest

T = TypeVar("T")
_TRIES = 5
_NARROW = ["plan_index", "seq", "status"]


@dataclass(slots=True)
class RunState:
    """Which rollouts are durable, by plan index, with the sequence number of the record that counts."""

    completed: dict[int, int] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)
    superseded: set[int] = field(default_factory=set)
    superseded_verdicts: list[DeadVerdict] = field(default_factory=list)
    next_seq: int = 0
    faults: list[Fault] = field(default_factory=list)

    def status(self, plan_index: int) -> Status | None:
        """None: nothing durable."""
        if plan_index in self.completed:
            return Status.COMPLETED
        return Status.FAILED if plan_index in self.failed else None

    def seq(self, plan_index: int) -> int | None:
        """The sequence number of the record that counts."""
        return self.completed.get(plan_index, self.failed.get(plan_index))

    def add(self, plan_index: int, seq: int, status: str, supersedes: int | None) -> None:
        """Count one record in."""
        if supersedes is not None:
            self.superseded.add(supersedes)
        if status == Status.COMPLETED:
            self.completed[plan_index] = seq
            self.failed.pop(plan_index, None)
        elif plan_index not in self.completed:
            self.failed[plan_index] = max(seq, self.failed.get(plan_index, -1))


def segments(layout: RunLayout, manifest: RunManifest) -> list[Path]:
    """The journal segments that are not in the parts, in order. Raises FileNotFoundError where one is missing: its lines have
    gone into parts that a newer manifest has, or are lost."""
    numbers = sorted(int(path.stem) for path in layout.journal.glob("*.jsonl"))
    numbers = [number for number in numbers if number >= manifest.journal_from]
    expected = range(manifest.journal_from, numbers[-1] + 1 if numbers else manifest.journal_from + 1)
    if numbers != list(expected) and (numbers or manifest.journal_from > 0):
        missing = min(set(expected) - set(numbers))
        raise FileNotFoundError(errno.ENOENT, "journal segment is missing", str(layout.segment(missing)))
    return [layout.segment(number) for number in numbers]


def header(line: bytes) -> dict[str, Any]:
    """The members of a journal line before its bodies."""
    end = line.find(b',"record":')
    if end < 0:
        end = line.index(b',"verdicts":')
    head: dict[str, Any] = orjson.loads(line[:end] + b"}")
    return head


def consistent(layout: RunLayout, read: Callable[[RunManifest], T]) -> T:
    """What `read` makes of the manifest in force. It is called again where the files vanish under it because the run's
    writer has just replaced them, however often that is. Raises InputError where they are really gone."""
    tries, last = 0, None
    while tries < _TRIES:
        manifest = read_manifest(layout)
        tries, last = (tries + 1 if manifest == last else 1), manifest
        try:
            return read(manifest)
        except FileNotFoundError as error:
            parts = (layout.part(table, part.file) for table, parts in manifest.parts.items() for part in parts)
            missing = next((path for path in parts if not path.exists()), error.filename or layout.folder)
            time.sleep(0.01)
    raise InputError(f"{missing}: missing, though the run's manifest names it.")


def next_seq(layout: RunLayout, manifest: RunManifest) -> int:
    """The sequence number that the next line of the journal will have. Reads no parts."""
    lines = (line for path in segments(layout, manifest) for _, line in scan(path))
    return max(manifest.next_seq, max((header(line)["seq"] + 1 for line in lines), default=0))


def read_state(layout: RunLayout, manifest: RunManifest) -> RunState:
    """The state of a run, journal included."""
    state = RunState(
        superseded=set(manifest.superseded),
        superseded_verdicts=list(manifest.superseded_verdicts),
        next_seq=manifest.next_seq,
    )
    for plan_index, seq, status in _committed(layout, manifest):
        if seq not in state.superseded:
            state.add(plan_index, seq, status, None)
    for path in segments(layout, manifest):
        for _, line in scan(path, state.faults):
            head = header(line)
            state.next_seq = max(state.next_seq, head["seq"] + 1)
            if head["kind"] == "rollout":
                state.add(head["plan_index"], head["seq"], head["status"], head["supersedes"])
            else:
                state.superseded_verdicts += [DeadVerdict(**dead) for dead in head["supersedes"]]
    return state


def completed_seqs(
    layout: RunLayout, manifest: RunManifest, tail: Iterable[bytes]
) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """By plan index up to the last one with a record, the sequence number of the completed one that counts; -1 where there is none.
    `tail`: the lines of the journal beyond the parts."""
    seqs = np.full(0, -1)
    superseded = list(manifest.superseded)
    for part in manifest.parts.get("rollouts", ()):
        columns = pq.read_table(layout.part("rollouts", part.file), columns=_NARROW)
        index, seq = columns["plan_index"].to_numpy(), columns["seq"].to_numpy()
        counts = pc.equal(columns["status"], Status.COMPLETED.value).to_numpy() & ~np.isin(seq, superseded)
        seqs = _reaching(seqs, int(index.max(initial=-1)))
        seqs[index[counts]] = seq[counts]
    for line in tail:
        head = header(line)
        if head["kind"] == "rollout":
            seqs = _reaching(seqs, head["plan_index"])
            if head["status"] == Status.COMPLETED:
                seqs[head["plan_index"]] = head["seq"]
    return seqs


def _reaching(seqs: "np.ndarray[Any, np.dtype[np.int64]]", last: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The same, and -1 for what it lacks up to an index and some more."""
    if last < len(seqs):
        return seqs
    return np.concatenate([seqs, np.full(max(last + 1 - len(seqs), len(seqs)), -1)])


def _committed(layout: RunLayout, manifest: RunManifest) -> Iterator[tuple[int, int, str]]:
    for part in manifest.parts.get("rollouts", ()):
        table = pq.read_table(layout.part("rollouts", part.file), columns=_NARROW)
        yield from zip(*(table[name].to_pylist() for name in _NARROW), strict=True)
