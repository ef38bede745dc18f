"""From journal segments to Parquet parts, and from several parts to fewer. Streaming: memory does not grow with the run."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.store.files import Files
from gymflow.store.journal import Fault, scan
from gymflow.store.layout import RunLayout
from gymflow.store.manifest import DeadVerdict, Part
from gymflow.store.tables import SCHEMAS, Row, parse_line, rows_of, to_arrow

ROW_GROUP_BYTES = 16 << 20
"""A row group is written when its columns take this much memory: it bounds readers and writer alike."""
PART_BYTES = 128 << 20
"""A part is ended when its file is this large."""
SMALL_PART_BYTES = 64 << 20
SMALL_PARTS = 4
"""From so many parts below SMALL_PART_BYTES on they are merged when the run ends: to rewrite two or three gains a reader nothing."""
_PARSED_BYTES = 1 << 20
"""Journal bytes held as Python objects before they become columns."""


class Converted(NamedTuple):
    """What a conversion wrote, and which superseded records it left out."""

    parts: dict[str, list[Part]]
    dropped: set[int]
    faults: list[Fault]


class PartWriter:
    """Writes the parts of one table, rotating by size."""

    def __init__(self, layout: RunLayout, table: str, first_number: int, files: Files) -> None:
        self._layout, self._table, self._number, self._files = layout, table, first_number, files
        self._buffer: list[pa.Table] = []
        self._buffered = 0
        self._rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._path = Path()
        self.parts: list[Part] = []

    def add(self, table: pa.Table) -> None:
        """Rows in the order in which they are to be read."""
        if table.num_rows == 0:
            return
        self._buffer.append(table)
        self._buffered += table.nbytes
        if self._buffered >= ROW_GROUP_BYTES:
            self._flush()
            if self._path.stat().st_size >= PART_BYTES:
                self._end()

    def finish(self) -> list[Part]:
        """The parts, durable but not yet committed."""
        self._flush()
        self._end()
        return self.parts

    def abandon(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            self._writer.close()
        for path in (self._path, *(self._layout.part(self._table, part.file) for part in self.parts)):
            if path.name:
                path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._buffer:
            return
        if self._writer is None:
            self._path = self._layout.part(self._table, f"{self._number:06d}.parquet")
            self._number += 1
            self._files.make_folder(self._path.parent)
            self._writer = pq.ParquetWriter(self._path, SCHEMAS[self._table], compression="zstd", compression_level=1)
        rows = pa.concat_tables(self._buffer)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._rows += rows.num_rows
        self._buffer, self._buffered = [], 0

    def _end(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        self._files.sync_file(self._path)
        self._files.sync_folder(self._path.parent)
        self.parts.append(Part(file=self._path.name, rows=self._rows, bytes=self._path.stat().st_size))
        self._rows = 0


def convert(
    layout: RunLayout, paths: Iterable[Path], first_number: int, superseded: Collection[int], files: Files
) -> Converted:
    """Write the good lines of journal segments as parts. Of a superseded record only its attempts are kept."""
    writers = {table: PartWriter(layout, table, first_number, files) for table in SCHEMAS}
    rows: dict[str, list[Row]] = {table: [] for table in SCHEMAS}
    dropped: set[int] = set()
    faults: list[Fault] = []
    held = 0

    def release() -> None:
        for table, waiting in rows.items():
            if waiting:
                writers[table].add(to_arrow(table, waiting))
                waiting.clear()

    try:
        for path in paths:
            for _, text in scan(path, faults):
                line = parse_line(text)
                tables: Iterable[str] = SCHEMAS
                if "record" in line and line["seq"] in superseded:
                    dropped.add(line["seq"])
                    tables = ("attempts",)
                for table, found in rows_of(line, tables):
                    rows[table].extend(found)
                held += len(text)
                if held >= _PARSED_BYTES:
                    release()
                    held = 0
        release()
        return Converted({table: writer.finish() for table, writer in writers.items()}, dropped, faults)
    except BaseException:
        for writer in writers.values():
            writer.abandon()
        raise
    finally:
        pa.default_memory_pool().release_unused()  # else the run keeps what a conversion needed, from one to the next


def merge(
    layout: RunLayout,
    table: str,
    parts: list[Part],
    first_number: int,
    superseded: Collection[int],
    superseded_verdicts: Collection[DeadVerdict],
    files: Files,
) -> list[Part]:
    """Fewer, larger parts without superseded rows; the same list where there is nothing to gain."""
    dead = _dead_rows(table, superseded, superseded_verdicts)
    if dead is None and sum(part.bytes < SMALL_PART_BYTES for part in parts) < SMALL_PARTS:
        return parts
    writer = PartWriter(layout, table, first_number, files)
    try:
        for part in parts:
            for rows in _row_groups(layout.part(table, part.file)):
                writer.add(rows if dead is None else _without(rows, dead))
        return writer.finish()
    except BaseException:
        writer.abandon()
        raise
    finally:
        pa.default_memory_pool().release_unused()


def _row_groups(path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, use_threads=False)


def _dead_rows(table: str, superseded: Collection[int], verdicts: Collection[DeadVerdict]) -> pa.Table | None:
    if table == "verdicts":
        if not verdicts:
            return None
        return pa.table(
            {name: [getattr(dead, name) for dead in verdicts] for name in ("rollout_id", "verdict_set", "seq")}
        )
    if table == "attempts" or not superseded:
        return None
    return pa.table({"seq": pa.array(sorted(superseded), pa.int64())})


def _without(rows: pa.Table, dead: pa.Table) -> pa.Table:
    if dead.column_names == ["seq"]:
        return rows.filter(pc.invert(pc.is_in(rows["seq"], value_set=dead["seq"].combine_chunks())))
    keys = {tuple(row.values()) for row in dead.to_pylist()}
    columns = (rows[name].to_pylist() for name in dead.column_names)
    return rows.filter(pa.array([key not in keys for key in zip(*columns, strict=True)], pa.bool_()))
