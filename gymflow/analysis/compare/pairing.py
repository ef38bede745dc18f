"""Which task of one run is which of another: by what the agent sees of it, never by its position."""

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.analysis.compare.sides import Side
from gymflow.contracts.comparison import Overlap
from gymflow.metrics.intervals import Array
from gymflow.metrics.task_table import numbered
from gymflow.store.memory import release

LISTED = 20

# Equal rows of a dataset share their key; the n-th of them here is the n-th of them there.
_PAIRS = """
WITH numbered AS (
    SELECT task_key, split_part(environment, ':', 1) AS place,
           row_number() OVER (PARTITION BY split_part(environment, ':', 1), task_key ORDER BY task_id, task_index) AS nth,
           row_number() OVER () - 1 AS row
    FROM {side}
)
SELECT * FROM numbered
"""
_JOIN = f"""
WITH b AS ({_PAIRS.format(side="base")}), c AS ({_PAIRS.format(side="candidate")})
SELECT b.row AS base_row, c.row AS candidate_row
FROM b FULL JOIN c ON b.place = c.place AND b.task_key = c.task_key AND b.nth = c.nth
ORDER BY b.row, c.row
"""
# Only what was sampled in the same run can be the same sample: long keys are joined of nothing else.
_SHARED = """
WITH b AS NOT MATERIALIZED (
    SELECT * FROM rollouts WHERE run_id = $base AND agent = $base_agent AND status = 'completed'
),
c AS NOT MATERIALIZED (
    SELECT * FROM rollouts WHERE run_id = $candidate AND agent = $candidate_agent AND status = 'completed'
),
common AS (SELECT sampled_in FROM b INTERSECT SELECT sampled_in FROM c)
SELECT count(*)
FROM (SELECT rollout_key, sampled_in, evidence_digest FROM b WHERE sampled_in IN (FROM common))
JOIN (SELECT rollout_key, sampled_in, evidence_digest FROM c WHERE sampled_in IN (FROM common))
USING (rollout_key, sampled_in, evidence_digest)
"""


@dataclass(slots=True)
class Pairs:
    """Tasks of both sides that have a scored rollout on both, in the base's order: row i of `base` is row i of `candidate`.
    `base_rows` are their rows in the base's own table."""

    base: pa.Table
    candidate: pa.Table
    base_rows: Array
    clusters: Array | None
    overlap: Overlap


def pair(connection: duckdb.DuckDBPyConnection, base: Side, candidate: Side) -> Pairs:
    """Pair two sides' tasks. `connection` has the views of both runs."""
    connection.register("base", base.tasks)
    connection.register("candidate", candidate.tasks)
    rows = connection.sql(_JOIN).to_arrow_table()
    release(connection)
    left, right = rows["base_row"], rows["candidate_row"]
    common = rows.filter(pc.and_(pc.is_valid(left), pc.is_valid(right)))
    base_rows, candidate_rows = (common[name].to_numpy() for name in ("base_row", "candidate_row"))
    scored = _scored(base, base_rows) & _scored(candidate, candidate_rows)
    only_base = base.tasks.take(left.filter(pc.is_null(right)))["task_id"]
    only_candidate = candidate.tasks.take(right.filter(pc.is_null(left)))["task_id"]
    digests = base.tasks["row_digest"].take(base_rows), candidate.tasks["row_digest"].take(candidate_rows)
    other = base.tasks["task_id"].take(base_rows).filter(pc.not_equal(*digests))
    paired = _taken(base.tasks, base_rows[scored])
    return Pairs(
        base=paired,
        candidate=_taken(candidate.tasks, candidate_rows[scored]),
        base_rows=np.asarray(base_rows[scored]),
        clusters=_clusters(paired),
        overlap=Overlap(
            tasks=len(common),
            scored=int(scored.sum()),
            only_base=len(only_base),
            only_candidate=len(only_candidate),
            only_base_ids=only_base.slice(0, LISTED).to_pylist(),
            only_candidate_ids=only_candidate.slice(0, LISTED).to_pylist(),
            other_row=len(other),
            other_row_ids=other.slice(0, LISTED).to_pylist(),
            shared_samples=_shared(connection, base, candidate),
        ),
    )


def _taken(table: pa.Table, rows: Array) -> pa.Table:
    """The rows of a table; the table itself where these are all, as mostly."""
    return table if np.array_equal(rows, np.arange(len(table))) else table.take(rows)


def _scored(side: Side, rows: Array) -> Array:
    return np.asarray(side.tasks["scored"].to_numpy()[rows] > 0)


def _clusters(tasks: pa.Table) -> Array | None:
    return numbered(tasks["cluster"].combine_chunks()) if len(tasks) else None


def _shared(connection: duckdb.DuckDBPyConnection, base: Side, candidate: Side) -> int:
    parameters = {
        "base": base.run_id,
        "candidate": candidate.run_id,
        "base_agent": base.agent,
        "candidate_agent": candidate.agent,
    }
    [(shared,)] = connection.execute(_SHARED, parameters).fetchall()
    release(connection)
    return int(shared)
