"""The check of what is cited: that the place exists, and that it shows what is claimed."""

from importlib.resources import files

import duckdb

from gymflow.store.memory import release

CITATIONS_AT_ONCE = 40_000
"""Citations that are held against the store together; every further slice reads what they cite in one more pass."""


def check_citations(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None) -> None:
    """Make `facts.checked` from `facts.citations`: the same rows with the column `holds`."""
    query = files(__package__).joinpath("citations.sql").read_text()
    [(count,)] = connection.execute("select count(*) from facts.citations").fetchall()
    for first in range(0, max(count, 1), CITATIONS_AT_ONCE):
        into = "insert into facts.checked" if first else "create table facts.checked as"
        given = {"run_id": run_id, "verdict_set": verdict_set, "first": first, "end": first + CITATIONS_AT_ONCE}
        connection.execute(f"{into}\n{query}", given)
        connection.execute("checkpoint facts")  # which packs what was inserted
        release(connection)
