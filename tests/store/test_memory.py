"""Memory that queries are done with goes back to the system when it is asked for."""

import sys
from pathlib import Path

import pytest

from gymflow.store import Store, connect
from gymflow.store.memory import release


def resident() -> float:
    """MiB that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_query_took_is_given_back_and_the_limit_stays(store: Store) -> None:
    with connect(store.root) as connection:
        limit = connection.execute("select current_setting('memory_limit')").fetchall()
        connection.execute("create temp table long as select repeat('x', 200) || range as text from range(500_000)")
        held = resident()
        connection.execute("drop table long")
        release(connection)
        assert resident() < held - 80
        assert connection.execute("select current_setting('memory_limit')").fetchall() == limit
