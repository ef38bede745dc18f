"""A run's plan and tasks as they are looked up: rows made when their chunk is played, or read when they are asked for.

The plan of a run of 100 000 rollouts is some 30 MB in columns; as objects it would take several times as much. Of its tasks, which
may be long, only those that were asked for last are held.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.contracts.plan import PlannedRollout
from gymflow.store.encoding import loads
from gymflow.store.layout import RunLayout
from gymflow.store.tables import Row

GROUPS_KEPT = 8
"""Row groups held at a time. Rollouts end nearly in the order of the plan, which goes over the tasks in theirs."""


class PlanTable:
    """The plan by chunk. A chunk's rows lie together, since chunks are numbered in the order of the plan."""

    def __init__(self, layout: RunLayout) -> None:
        self._table: pa.Table = pq.read_table(layout.plan).drop_columns(["run_id"]).combine_chunks()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @cached_property
    def indices(self) -> frozenset[int]:
        """All plan indices."""
        return frozenset(self._table["plan_index"].to_pylist())

    @cached_property
    def _spans(self) -> dict[int, tuple[int, int]]:
        """Chunk -> (first row, number of rows)."""
        counts = pc.value_counts(self._table["chunk"])
        spans, first = {}, 0
        for entry in counts.to_pylist():
            spans[entry["values"]] = (first, entry["counts"])
            first += entry["counts"]
        return spans

    def chunks(self) -> list[int]:
        """Chunk numbers, in order."""
        return list(self._spans)

    def chunk_indices(self, chunk: int) -> list[int]:
        """Plan indices of a chunk."""
        found: list[int] = self._table["plan_index"].slice(*self._spans[chunk]).to_pylist()
        return found

    def chunk_keys(self, chunk: int) -> list[str]:
        """Rollout keys of a chunk."""
        found: list[str] = self._table["rollout_key"].slice(*self._spans[chunk]).to_pylist()
        return found

    def rows(self, chunk: int, but: Collection[int] = ()) -> list[PlannedRollout]:
        """The rows of a chunk without the plan indices in `but`."""
        rows = self._table.slice(*self._spans[chunk]).to_pylist()
        return [PlannedRollout.model_construct(**row) for row in rows if row["plan_index"] not in but]

    def keys(self) -> Iterator[str]:
        """All rollout keys, in order."""
        for batch in self._table.select(["rollout_key"]).to_batches(4096):
            yield from batch["rollout_key"].to_pylist()


class Rows:
    """The rows of a Parquet file by a column of small whole numbers: row groups are read as rows of them are asked for, and the last few
    kept. Replacing the file changes nothing."""

    def __init__(self, path: Path, key: str, columns: list[str]) -> None:
        self._columns = columns
        self._file = pq.ParquetFile(path)
        metadata = self._file.metadata
        self._ends = list(accumulate(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)))
        keys = self._file.read([key], use_threads=False)[key].to_numpy()
        self._places = np.full(int(keys.max()) + 1 if len(keys) else 0, -1, dtype=np.int32)
        self._places[keys] = np.arange(len(keys), dtype=np.int32)
        self._kept: dict[int, list[Row]] = {}

    def __getitem__(self, index: int) -> Row:
        """The columns of a row, in the order in which they were named. KeyError where there is none."""
        place = int(self._places[index]) if 0 <= index < len(self._places) else -1
        if place < 0:
            raise KeyError(index)
        number = bisect_right(self._ends, place)
        rows = self._kept.pop(number) if number in self._kept else self._read(number)
        if len(self._kept) >= GROUPS_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[number] = rows
        row: Row = rows[place - self._ends[number]]
        return row

    def _read(self, number: int) -> list[Row]:
        table = self._file.read_row_group(number, columns=self._columns, use_threads=False)
        return list(zip(*(table[name].to_pylist() for name in self._columns), strict=True))


class TaskTable:
    """The tasks by index, as JSON text until one is asked for."""

    def __init__(self, layout: RunLayout) -> None:
        self._rows = Rows(layout.tasks, "task_index", ["task", "flags"])

    def __getitem__(self, task_index: int) -> dict[str, Any]:
        text, flags = self._rows[task_index]
        task: dict[str, Any] = loads(text, flags)
        return task
