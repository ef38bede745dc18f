"""Tables on stdout: drawn on a terminal, tab-separated lines without a header in a pipe."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.terminal import one_line, paged

GAP = 2
LEAST = 24
"""Cells that the last column needs for folding to be better than a long line."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, stack: bool = False) -> None:
    """One line for each row; cells of text, no markup. With `stack` rows that a terminal is too narrow for take several lines
    instead of narrow columns."""
    with paged() as console:
        if not console.is_terminal:
            for row in rows:
                print("\t".join(map(one_line, row)))
            return
        cells = [[one_line(cell) for cell in row] for row in rows]
        widths = _widths([columns, *cells])
        if stack and sum(widths) + GAP * (len(widths) - 1) > console.width:
            _put_stacked(console, columns, cells)
        else:
            put_table(console, columns, cells)


def put_table(
    console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """A table drawn on a console; the columns in `right` hold numbers. Only the last column is folded to fit: where the others
    alone are too wide, lines are as long as they have to be."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = _widths([columns, *cells])
    if sum(widths[:-1]) + GAP * (len(widths) - 1) + min(widths[-1], LEAST) > console.width:
        _put_lines(console, columns, cells, widths, right)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns, 1):
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, overflow="fold", no_wrap=number < len(columns), justify=justify)
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _put_lines(
    console: Console, columns: Sequence[str], rows: list[list[str]], widths: list[int], right: Sequence[str]
) -> None:
    def line(cells: Sequence[str]) -> str:
        padded = []
        for cell, name, width in zip(cells, columns, widths, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if name in right else cell + space)
        return (" " * GAP).join(padded).rstrip()

    console.print(line(columns), style="bold", soft_wrap=True)
    for row in rows:
        console.print(line(row), soft_wrap=True)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def _put_stacked(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for first, *further in rows:
        console.print(first, style="bold", soft_wrap=True)
        fields = (f"{name} {cell}" for name, cell in zip(columns[1:], further, strict=True) if cell)
        console.print(Padding("   ".join(fields), (0, 0, 0, 2)))
