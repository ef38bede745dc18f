"""The scorecard of a run, from the store."""

from collections import defaultdict
from importlib.resources import files

import duckdb

from gymflow.contracts.report import Failures, Scorecard, ScoreLine
from gymflow.metrics.estimators import pass_at_k_of
from gymflow.metrics.profile import reward_bounds
from gymflow.metrics.quality import Options, Quality
from gymflow.metrics.summaries import rows
from gymflow.metrics.task_table import ROLLOUTS_AT_ONCE, open_task_tables, task_tables
from gymflow.store import Store, connect
from gymflow.store.memory import release

QUERY = files(__package__).joinpath("scorecard.sql").read_text()
STRETCHES = files(__package__).joinpath("stretches.sql").read_text()
FAILURES = """
    SELECT o.environment, o.agent, coalesce(o.failure, o.verdict_failure) AS kind, count(*) AS rollouts,
           mode(coalesce(r.failure_message, v.failure_message)) AS words
    FROM outcomes o
    LEFT JOIN rollouts r ON r.run_id = o.run_id AND r.plan_index = o.plan_index
    LEFT JOIN verdicts v ON v.run_id = o.run_id AND v.rollout_id = r.rollout_id AND v.verdict_set = o.verdict_set
    WHERE o.run_id = $run_id AND o.verdict_set IS NOT DISTINCT FROM $verdict_set
      AND coalesce(o.failure, o.verdict_failure) IS NOT NULL
    GROUP BY ALL
"""


def scorecard(store: Store, run_id: str, verdict_set: str | None = None, k: tuple[int, ...] = ()) -> Scorecard:
    """One line per environment and agent. pass@k is given for 1, the largest k that every task allows, and `k`."""
    reader = store.run(run_id)
    chosen = verdict_set or (reader.verdict_sets[-1].name if reader.verdict_sets else None)
    with connect(store.root, runs=[run_id]) as connection:
        open_task_tables(connection, run_id, chosen)
        tables = {(table.environment, table.agent): table for table in task_tables(connection)}
        _open_stretches(connection, run_id)
        found = rows(connection, QUERY, {"run_id": run_id})
        incomplete = any(row["unverified"] or row["failed"] for row in found)
        failures = rows(connection, FAILURES, {"run_id": run_id, "verdict_set": chosen}) if incomplete else []
    kinds: dict[tuple[str, str], list[Failures]] = defaultdict(list)
    for row in failures:
        kinds[row.pop("environment"), row.pop("agent")].append(Failures(**row))
    lines = []
    for row in found:
        key = row["environment"], row["agent"]
        quality = Quality(tables[key], reward_bounds(reader.document, row["environment"]), Options(k=k))
        score = quality.score()
        lines.append(
            ScoreLine(
                **row,
                standard_error=score.standard_error,
                interval=score.interval,
                pass_at=_pass_at(quality, k),
                failures=sorted(kinds[key], key=lambda one: (-one.rollouts, one.kind)),
            )
        )
    return Scorecard(run_id=run_id, name=reader.document.name, store=store.address, verdict_set=chosen, lines=lines)


def _open_stretches(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Make the temporary table `_stretches` (stretches.sql), slice by slice: rollouts that are planned together are sampled together."""
    [(end,)] = connection.execute(
        "SELECT coalesce(max(plan_index), 0) + 1 FROM rollouts WHERE run_id = ?", [run_id]
    ).fetchall()
    for first in range(0, end, ROLLOUTS_AT_ONCE):
        into = "INSERT INTO _stretches" if first else "CREATE OR REPLACE TEMP TABLE _stretches AS"
        given = {"run_id": run_id, "first": first, "end": first + ROLLOUTS_AT_ONCE}
        connection.execute(f"{into}\n{STRETCHES}", given)
        release(connection)


def _pass_at(quality: Quality, k: tuple[int, ...]) -> dict[int, float]:
    """By k, where a task has so many scored rollouts."""
    least = int(quality.all.scored.min()) if len(quality.all.scored) else 0
    wanted = {1, *k} | ({least} if least else set())
    return {
        one.k: one.estimate.value
        for one in quality.at(pass_at_k_of)
        if one.k in wanted and one.estimate.value is not None
    }
