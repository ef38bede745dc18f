"""A stretch of the run's journal that could not be read: a write that a crash or a full disk cut short, or damage.

severity: error
scope: run
"""

from collections.abc import Iterator

import duckdb

from gymflow.analysis.health.thresholds import Thresholds
from gymflow.store import RunReader


def find(
    connection: duckdb.DuckDBPyConnection, reader: RunReader, thresholds: Thresholds
) -> Iterator[tuple[None, None, str, str]]:
    """Every fault that the store knows of; what was lost there is missing and can be sampled again."""
    for fault in reader.faults():
        yield (
            None,
            None,
            f"journal/{fault.segment}",
            f"{fault.length} bytes from {fault.offset} unreadable: {fault.reason}",
        )
