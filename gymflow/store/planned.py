"""A run's plan and tasks as the scheduler looks them up: columns in memory, rows made when their chunk is played.

A run of 100 000 rollouts has its plan in some 30 MB this way; as objects it would take several times as much.
"""

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.contracts.plan import PlannedRollout
from gymflow.store.encoding import loads
from gymflow.store.layout import RunLayout


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


class TaskTable:
    """The tasks by index, as JSON text until one is asked for."""

    def __init__(self, layout: RunLayout) -> None:
        table = pq.read_table(layout.tasks, columns=["task_index", "task", "flags"])
        self._texts = table["task"].combine_chunks()
        self._flags = table["flags"].combine_chunks()
        self._rows = {index: row for row, index in enumerate(table["task_index"].to_pylist())}

    def __getitem__(self, task_index: int) -> dict[str, Any]:
        row = self._rows[task_index]
        task: dict[str, Any] = loads(self._texts[row].as_py(), self._flags[row].as_py())
        return task
