"""The time in which rollouts were under way: the union of their stretches, however they are cut into slices."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.metrics import scorecard

TIMES = st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 6), st.booleans(), st.booleans()), max_size=30)


def elapsed(rows: list[tuple[int, int, bool, bool]]) -> dict[str, float]:
    """By agent, as the scorecard's query has it."""
    with duckdb.connect() as connection:
        connection.execute("""
            CREATE TABLE rollouts (run_id VARCHAR, plan_index BIGINT, environment VARCHAR, agent VARCHAR, sampled_in VARCHAR,
                started_at DOUBLE, duration_s DOUBLE, status VARCHAR, prompt_tokens BIGINT, completion_tokens BIGINT, cost_usd DOUBLE);
            CREATE TABLE _per_task AS SELECT 'mcqa' AS environment, unnest(['a', 'b']) AS agent, 1 AS planned, 0 AS scored,
                0 AS unverified, 0 AS failed, 1 AS missing, 0 AS passed, NULL::DOUBLE AS mean;
            CREATE MACRO mean_of(x) AS avg(x);
        """)
        for index, (start, duration, second, reused) in enumerate(rows):
            agent, origin = "b" if second else "a", "earlier" if reused else "r"
            connection.execute(
                "INSERT INTO rollouts VALUES ('r', ?, 'mcqa', ?, ?, ?, ?, 'completed', 1, 1, 0)",
                [index, agent, origin, start, duration],
            )
        scorecard._open_stretches(connection, "r")
        found = connection.execute(f"SELECT agent, elapsed_s FROM ({scorecard.QUERY})", {"run_id": "r"}).fetchall()
    return {agent: value or 0.0 for agent, value in found}


def union(spans: list[tuple[int, int]]) -> float:
    """Seconds that at least one span covers."""
    return float(len({second for start, duration in spans for second in range(start, start + duration)}))


@settings(max_examples=40, deadline=None)
@given(rows=TIMES, at_once=st.integers(1, 8))
def test_elapsed_time_is_that_in_which_a_rollout_was_under_way(
    rows: list[tuple[int, int, bool, bool]], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorecard, "ROLLOUTS_AT_ONCE", at_once)
        found = elapsed(rows)
    for agent, second in (("a", False), ("b", True)):
        assert found[agent] == union(
            [(start, took) for start, took, of_b, reused in rows if of_b == second and not reused]
        )
