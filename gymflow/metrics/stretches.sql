-- The stretches of time in which rollouts of a slice were under way, per environment and agent: what overlaps or follows at once is one.
-- Parameters: $run_id, $first and $end (plan_index, from and to before).
WITH sampled AS (
    SELECT environment, agent, started_at, started_at + duration_s AS ended_at
    FROM rollouts
    WHERE run_id = $run_id AND plan_index >= $first AND plan_index < $end AND sampled_in = run_id AND duration_s IS NOT NULL
),
covered AS (
    SELECT environment, agent, started_at,
           max(ended_at) OVER (PARTITION BY environment, agent ORDER BY started_at, ended_at
                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_until,
           max(ended_at) OVER (PARTITION BY environment, agent) AS all_until
    FROM sampled
)
-- A stretch lasts until what is covered when the next one begins.
SELECT environment, agent, started_at,
       lead(covered_until, 1, all_until) OVER (PARTITION BY environment, agent
                                               ORDER BY started_at, covered_until NULLS FIRST) AS ended_at
FROM covered
WHERE covered_until IS NULL OR started_at > covered_until
