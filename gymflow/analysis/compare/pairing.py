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
_SHARED = """
SELECT count(*)
FROM rollouts b JOIN rollouts c USING (rollout_key, sampled_in, evidence_digest)
WHERE b.run_id = $base AND c.run_id = $candidate AND b.agent = $base_agent AND c.agent = $candidate_agent
  AND b.status = 'completed' AND c.status = 'completed'
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
    left, right = rows["base_row"], rows["candidate_row"]
    common = rows.filter(pc.and_(pc.is_valid(left), pc.is_valid(right)))
    base_rows, candidate_rows = (common[name].to_numpy() for name in ("base_row", "candidate_row"))
    scored = _scored(base, base_rows) & _scored(candidate, candidate_rows)
    only_base = base.tasks.take(left.filter(pc.is_null(right)))["task_id"]
    only_candidate = candidate.tasks.take(right.filter(pc.is_null(left)))["task_id"]
    digests = base.tasks["row_digest"].take(base_rows), candidate.tasks["row_digest"].take(candidate_rows)
    other = base.tasks["task_id"].take(base_rows).filter(pc.not_equal(*digests))
    paired = base.tasks.take(base_rows[scored])
    return Pairs(
        base=paired,
        candidate=candidate.tasks.take(candidate_rows[scored]),
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
    return int(connection.execute(_SHARED, parameters).fetchall()[0][0])
