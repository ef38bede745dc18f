"""`gym sql`: rows as a table, JSON, CSV or tab-separated lines, and what there is to ask."""

import csv as csvlib
import datetime
import decimal
import itertools
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.schema import views
from cli.tables import put_table
from cli.terminal import json_text, one_line, paged, plain, print_json, print_json_list
from gymflow.store import QueryResult, query

SHOWN = 1000
"""Rows that are drawn on a terminal."""
CUT = 200
"""Characters of a value that are drawn."""


def print_query(root: Path, sql: str, *, csv: bool, json: bool) -> None:
    """Run a query and print its rows."""
    result = query(root, sql)
    columns = _distinct(result.columns)
    if json:
        print_json_list(dict(zip(columns, map(json_value, row), strict=True)) for row in result.rows)
    elif csv:
        _print_csv(columns, ([_cell(value, "") for value in row] for row in result.rows))
    elif sys.stdout.isatty():
        _print_drawn(columns, result)
    else:
        _print_tabbed(columns, ([_cell(value, "") for value in row] for row in result.rows))


def print_schema(*, csv: bool, json: bool) -> None:
    """The views with their columns."""
    if json:
        print_json([asdict(view) for view in views()])
        return
    rows = [[view.name, one.name, one.type, one.description] for view in views() for one in view.columns]
    columns = ["view", "column", "type", "description"]
    if csv:
        _print_csv(columns, rows)
    elif not sys.stdout.isatty():
        _print_tabbed(columns, rows)
    else:
        with paged() as console:
            for view in views():
                console.print(f"\n{view.name}", style="bold")
                console.print(view.description)
                put_table(console, ("", "", ""), [[f"  {one.name}", one.type, one.description] for one in view.columns])


def json_value(value: Any) -> Any:
    """A value of DuckDB as JSON has it: timestamps as ISO 8601, bytes as hex, what is not finite as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    return str(value)


def _print_drawn(columns: list[str], result: QueryResult) -> None:
    rows: Iterator[tuple[Any, ...]] = iter(result.rows)
    first = list(itertools.islice(rows, SHOWN))
    numbers = [name for name, values in zip(columns, zip(*first, strict=True), strict=False) if _numeric(values)]
    cells = [[_cell(value, "NULL") for value in row] for row in first]
    with paged(chop=True) as console:
        put_table(console, columns, [[_cut(cell) for cell in row] for row in cells], right=numbers)
        if any(len(cell) > CUT for row in cells for cell in row):
            console.print("long values are cut short; --csv and --json print the whole", style="yellow")
        if next(rows, None) is not None:
            console.print(f"the first {SHOWN:,} rows; --csv and --json print all", style="yellow")


def _print_tabbed(columns: list[str], rows: Iterable[list[str]]) -> None:
    for row in itertools.chain([columns], rows):
        print("\t".join(map(one_line, row)))


def _print_csv(columns: list[str], rows: Iterable[list[str]]) -> None:
    writer = csvlib.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([plain(cell) for cell in row] if sys.stdout.isatty() else row for row in rows)


def _cut(cell: str) -> str:
    return cell if len(cell) <= CUT else cell[: CUT - 1] + "…"


def _numeric(values: tuple[Any, ...]) -> bool:
    return all(value is None or isinstance(value, int | float | decimal.Decimal) for value in values)


def _cell(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    simple = json_value(value)
    return simple if isinstance(simple, str) else json_text(simple)


def _distinct(columns: list[str]) -> list[str]:
    """Column names of which no two are the same; a later one gets a number, as DuckDB numbers them in subqueries."""
    names: list[str] = []
    for column in columns:
        name, number = column, 0
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return names
