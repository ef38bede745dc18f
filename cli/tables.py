"""Tables on stdout: drawn on a terminal, tab-separated lines without a header in a pipe."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.terminal import one_line, paged


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, stack: bool = False) -> None:
    """One line for each row; cells of text, no markup. With `stack` rows that a terminal is too narrow for take several lines
    instead of narrow columns."""
    with paged() as console:
        if not console.is_terminal:
            for row in rows:
                print("\t".join(map(one_line, row)))
            return
        cells = [[one_line(cell) for cell in row] for row in rows]
        if stack and _width([columns, *cells]) > console.width:
            _put_stacked(console, columns, cells)
        else:
            put_table(console, columns, cells)


def put_table(
    console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """A table drawn on a console; the columns in `right` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, overflow="fold", no_wrap=name == columns[0] or name in right, justify=justify)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console.print(table)


def _width(rows: Sequence[Sequence[str]]) -> int:
    return sum(2 + max(map(cell_len, column)) for column in zip(*rows, strict=True)) - 2


def _put_stacked(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for first, *further in rows:
        console.print(first, style="bold", soft_wrap=True)
        fields = (f"{name} {cell}" for name, cell in zip(columns[1:], further, strict=True) if cell)
        console.print(Padding("   ".join(fields), (0, 0, 0, 2)))
