"""The scorecard of a run, from the store."""

from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path

from gymflow.contracts.report import Scorecard, ScoreLine
from gymflow.metrics.estimators import pass_at_k
from gymflow.metrics.summaries import rows
from gymflow.store import Store, connect

QUERY = files(__package__).joinpath("scorecard.sql").read_text()
PER_TASK = """
    SELECT environment, agent, count(*) AS n, count(*) FILTER (WHERE passed) AS c
    FROM outcomes
    WHERE run_id = $run_id AND verdict_set IS NOT DISTINCT FROM $verdict_set AND outcome = 'scored'
    GROUP BY environment, agent, task_key
"""
FAILURES = """
    SELECT environment, agent, coalesce(failure, verdict_failure) AS kind, count(*) AS rollouts
    FROM outcomes
    WHERE run_id = $run_id AND verdict_set IS NOT DISTINCT FROM $verdict_set
      AND coalesce(failure, verdict_failure) IS NOT NULL
    GROUP BY ALL
"""


def scorecard(store: Store, run_id: str, verdict_set: str | None = None, k: tuple[int, ...] = ()) -> Scorecard:
    """One line per environment and agent. pass@k is given for 1, the largest k that every task allows, and `k`."""
    reader = store.run(run_id)
    chosen = verdict_set or (reader.verdict_sets[-1].name if reader.verdict_sets else None)
    parameters = {"run_id": run_id, "verdict_set": chosen}
    with connect(store.root, runs=[run_id]) as connection:
        found = rows(connection, QUERY, parameters)
        counts = rows(connection, PER_TASK, parameters)
        failures = rows(connection, FAILURES, parameters)
    by_agent: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in counts:
        by_agent[row["environment"], row["agent"]].append((row["n"], row["c"]))
    kinds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in failures:
        kinds[row["environment"], row["agent"]][row["kind"]] += row["rollouts"]
    lines = []
    for row in found:
        key = row["environment"], row["agent"]
        repeats = {1, row.pop("least_repeats") or 1, *k} - {0}
        del row["most_repeats"], row["pass_rate"]
        lines.append(ScoreLine(**row, pass_at=_pass_at(by_agent[key], repeats), failures=dict(kinds[key])))
    return Scorecard(
        run_id=run_id, name=reader.document.name, store=str(Path(store.root)), verdict_set=chosen, lines=lines
    )


def _pass_at(counts: list[tuple[int, int]], ks: set[int]) -> dict[int, float]:
    found = {}
    for k in sorted(ks):
        values = [value for n, c in counts if (value := pass_at_k(n, c, k)) is not None]
        if values:
            found[k] = sum(values) / len(values)
    return found
