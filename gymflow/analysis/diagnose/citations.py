"""The check of what is cited: that the place exists, and that it shows what is claimed."""

from importlib.resources import files

import duckdb


def check_citations(connection: duckdb.DuckDBPyConnection, run_id: str, verdict_set: str | None) -> None:
    """Make `facts.checked` from `facts.citations`: the same rows with the column `holds`."""
    [statement] = duckdb.extract_statements(files(__package__).joinpath("citations.sql").read_text())
    connection.execute(statement, {"run_id": run_id, "verdict_set": verdict_set})
