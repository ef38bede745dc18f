-- One row per environment and agent of a run, in one verdict set. Over _per_task (per_task.sql) and
-- _stretches (stretches.sql). Parameter: $run_id.
-- score: mean over tasks of the per-task mean over scored rollouts. The errors of it are made in scorecard.py.
-- A task without a scored rollout is counted in `unscored_tasks`, never as zero.
WITH scores AS (
    SELECT environment, agent,
           count(*) AS tasks,
           count(*) FILTER (WHERE scored = 0) AS unscored_tasks,
           mean_of(mean) AS score,
           count(*) FILTER (WHERE passed = scored AND scored > 0) AS always,
           count(*) FILTER (WHERE passed BETWEEN 1 AND scored - 1) AS sometimes,
           count(*) FILTER (WHERE passed = 0 AND scored > 0) AS never,
           sum(planned)::BIGINT AS rollouts,
           sum(scored)::BIGINT AS scored,
           sum(unverified)::BIGINT AS unverified,
           sum(failed)::BIGINT AS failed,
           sum(missing)::BIGINT AS missing
    FROM _per_task
    GROUP BY ALL
),
-- What was under way at a time is one stretch of it, so that neither a pause between two sessions nor what was reused counts.
covered AS (
    SELECT environment, agent, started_at, ended_at,
           max(ended_at) OVER (PARTITION BY environment, agent ORDER BY started_at, ended_at
                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_until
    FROM _stretches
),
elapsed AS (
    SELECT environment, agent,
           sum(greatest(ended_at - greatest(started_at, coalesce(covered_until, started_at)), 0)) AS elapsed_s
    FROM covered
    GROUP BY ALL
),
costs AS (
    SELECT environment, agent,
           sum(prompt_tokens)::BIGINT AS prompt_tokens,
           sum(completion_tokens)::BIGINT AS completion_tokens,
           count(*) FILTER (WHERE status = 'completed' AND (prompt_tokens IS NULL OR completion_tokens IS NULL)) AS uncounted,
           sum(cost_usd) AS cost_usd,
           median(duration_s) AS median_duration_s,
           count(*) FILTER (WHERE sampled_in <> run_id) AS reused
    FROM rollouts
    WHERE run_id = $run_id
    GROUP BY ALL
)
SELECT * REPLACE (coalesce(reused, 0) AS reused, coalesce(uncounted, 0) AS uncounted) FROM scores LEFT JOIN costs USING (environment, agent) LEFT JOIN elapsed USING (environment, agent)
ORDER BY environment, agent
