"""Report tables on a terminal."""

from collections.abc import Iterable

from rich.console import Console

from cli.tables import put_table
from cli.terminal import one_line
from gymflow.analysis.sheets import Sheet


def put_sheets(console: Console, sheets: Iterable[Sheet]) -> None:
    """Each table under its title."""
    for number, sheet in enumerate(sheets):
        console.print(("\n" if number else "") + one_line(sheet.title), style="bold", soft_wrap=True)
        put_table(
            console,
            sheet.columns,
            sheet.rows,
            right=[name for name, right in zip(sheet.columns, sheet.numbers, strict=True) if right],
        )
