"""Tables on stdout: drawn on a terminal, tab-separated lines without a header in a pipe."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One line for each row; cells of text, no markup."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(" ".join(cell.split()) for cell in row))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name == columns[0])
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
