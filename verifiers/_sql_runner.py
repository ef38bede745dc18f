"""Runs one query on a fresh database, inside a sandbox; the rows go to standard output as JSON.

The database is made first. What the query then may do is read its tables: in DuckDB it is a SELECT, external access is off and
cannot be turned on again; in SQLite reading is all that is authorized.
"""

# Runs in the sandbox, by whichever Python that has.
# ruff: noqa: PTH112, PTH123
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

import json
import os
import sys

sys.path += [p for p in (f"{r}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages" for r in ("/opt/venv", sys.prefix)) if os.path.isdir(p)][:1]  # fmt: skip


SCHEMA_PRAGMAS = ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list")
"""What tells of the tables; as table-valued functions they stand in queries."""


def plain(value):
    """JSON for a value of a result; what JSON has no form for is tagged by its type."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {"map": [[str(key), plain(item)] for key, item in value.items()]}
    if type(value).__name__ == "Decimal":
        return float(value)
    return str(value)


def sqlite_rows(job):
    import sqlite3

    database = sqlite3.connect(":memory:")
    database.executescript(job["database"])
    database.commit()
    if hasattr(database, "enable_load_extension"):
        database.enable_load_extension(False)
    reading = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

    def authorized(action, name, *_):
        allowed = action in reading or (action == sqlite3.SQLITE_PRAGMA and name in SCHEMA_PRAGMAS)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    database.set_authorizer(authorized)
    cursor = database.execute(job["sql"])
    if cursor.description is None:
        raise ValueError("this is no query")
    return [item[0] for item in cursor.description or ()], cursor.fetchmany(job["max_rows"] + 1)


def duckdb_rows(job):
    import duckdb

    database = duckdb.connect(":memory:", config={"threads": 1})
    database.execute(job["database"])
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    statements = duckdb.extract_statements(job["sql"])
    if len(statements) != 1:
        raise ValueError(f"{len(statements)} statements where one was expected")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("this is no query")
    cursor = database.execute(statements[0])
    return [item[0] for item in cursor.description or ()], cursor.fetchmany(job["max_rows"] + 1)


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        job = json.load(source)
    try:
        columns, rows = (sqlite_rows if job["dialect"] == "sqlite" else duckdb_rows)(job)
        answer = {"columns": columns, "rows": [[plain(value) for value in row] for row in rows[: job["max_rows"]]]}
        answer["complete"] = len(rows) <= job["max_rows"]
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:1000]}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
