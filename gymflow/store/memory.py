"""What a process keeps of memory that queries are done with."""

import duckdb
import pyarrow as pa


def release(connection: duckdb.DuckDBPyConnection) -> None:
    """Give free memory of DuckDB and Arrow back to the system, where both keep it for some seconds or for good: between two queries
    that need much, so that they do not need it both. Takes some milliseconds. The connection is one of `connect`, which has DuckDB's
    own limit of memory."""
    connection.execute("reset memory_limit")  # setting a limit, whichever, is what empties DuckDB's allocator
    pa.default_memory_pool().release_unused()
