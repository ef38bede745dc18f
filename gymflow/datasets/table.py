"""CSV datasets: a header and rows of text cells. A column `name[]` holds a comma-separated list."""

import csv
from collections.abc import Iterator
from pathlib import Path

from gymflow.datasets.jsonl import Line
from gymflow.errors import InputError


def read_csv(file: Path) -> Iterator[Line]:
    """The rows of a file, by the line they begin in. A row with too few or too many cells is a fault; blank lines are
    skipped. InputError when the file or its header cannot be read."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            columns = _header(next(reader, []), file)
            begins = reader.line_num + 1
            while True:
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield Line(begins, None, f"not CSV: {error}")
                    return
                if cells:
                    yield _row(begins, columns, cells)
                begins = reader.line_num + 1
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8: {error.reason}") from error


def split_list(cell: str) -> list[str]:
    """The parts of a comma-separated list; empty parts, as doubled and trailing commas leave them, are no parts.

    >>> split_list("red,,blue,")
    ['red', 'blue']
    """
    return [part.strip() for part in cell.split(",") if part.strip()]


def _header(cells: list[str], file: Path) -> list[str]:
    columns = [cell.strip() for cell in cells]
    if not any(columns):
        raise InputError(f"{file}:1: the first line must name the columns")
    for name in columns:
        if not name:
            raise InputError(f"{file}:1: a column has no name")
        if columns.count(name) > 1:
            raise InputError(f"{file}:1: the column {name!r} occurs twice")
    return columns


def _row(line: int, columns: list[str], cells: list[str]) -> Line:
    if len(cells) != len(columns):
        return Line(line, None, f"{len(cells)} cells, but the header names {len(columns)} columns")
    return Line(
        line,
        {
            name.removesuffix("[]"): split_list(cell) if name.endswith("[]") else cell
            for name, cell in zip(columns, cells, strict=True)
        },
    )
