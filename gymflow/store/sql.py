"""SQL on a store from outside: one statement that reads, and nothing but the store within its reach."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow.dataset import dataset

from gymflow.errors import InputError
from gymflow.store.views import open_views

MEMORY_LIMIT = "2GB"
_FETCH = 1000


@dataclass(slots=True)
class QueryResult:
    """Column names, and rows that are fetched as they are iterated over, once."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]

    def objects(self) -> list[dict[str, Any]]:
        """All rows as objects."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def query(root: str | Path, sql: str, *, runs: Iterable[str] | None = None) -> QueryResult:
    """Run one SELECT (or DESCRIBE, SUMMARIZE, SHOW) on the views of `connect`.

    The query reaches no file, no network, no extension and no setting, and uses at most 2 GB of memory without spilling to
    disk. Raises InputError otherwise.
    """
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError(f"SQL: {error}") from None
    if len(statements) != 1:
        raise InputError(f"SQL: one statement at a time, not {len(statements)}.")
    if statements[0].type is not duckdb.StatementType.SELECT:  # EXPLAIN neither: it can run what it explains
        kind = statements[0].type.name.lower().removesuffix("_statement")
        raise InputError(f"SQL: only statements that read are allowed (SELECT …), not {kind}.")
    connection = open_views(root, runs, _arrow, {"memory_limit": MEMORY_LIMIT, "temp_directory": ""})
    confine(connection)
    try:
        result = connection.execute(statements[0])
    except duckdb.OutOfMemoryException:
        raise InputError(f"SQL: the query needs more than {MEMORY_LIMIT} of memory; select less of it.") from None
    except duckdb.Error as error:
        raise InputError(f"SQL: {error}") from None
    return QueryResult([column[0] for column in result.description or ()], _rows(result))


def _arrow(connection: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema, paths: list[Path]) -> str:
    # DuckDB itself gets no file to open: a path that it may read it may also write, for instance by a COPY inside a WITH.
    connection.register(f"_parts_{table}", dataset([str(path) for path in paths], schema=schema))
    return f"_parts_{table}"


def confine(connection: duckdb.DuckDBPyConnection) -> None:
    """Take all reach beyond its own memory from a connection, for good."""
    for setting in (
        "enable_external_access = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        "python_enable_replacements = false",
        "lock_configuration = true",
    ):
        connection.execute(f"set {setting}")


def _rows(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    try:
        while rows := result.fetchmany(_FETCH):
            yield from rows
    except duckdb.Error as error:
        raise InputError(f"SQL: {error}") from None
