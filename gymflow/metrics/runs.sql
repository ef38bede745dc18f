-- One row per environment and agent of every run, in the run's current verdict set. Scores are defined in scorecard.sql.
-- standard_error: of the score, clustered by `cluster`, a task without one being its own: sqrt(G/(G-1) * sum of the squared sums of
-- the clusters' deviations) / n (intervals.py, clustered_error); null for fewer than two groups, and where it is too large.
WITH per_task AS (
    SELECT run_id, environment, agent, task_index,
           mean_of(reward) AS mean,
           count(*) AS planned,
           count(*) FILTER (WHERE outcome = 'scored') AS scored,
           count(*) FILTER (WHERE outcome = 'unverified') AS unverified,
           count(*) FILTER (WHERE outcome = 'failed') AS failed,
           count(*) FILTER (WHERE outcome = 'missing') AS missing
    FROM outcomes
    WHERE is_current
    GROUP BY ALL
),
lines AS (
    SELECT run_id, environment, agent,
           mean_of(mean) AS score,
           sum(planned)::BIGINT AS planned,
           sum(scored)::BIGINT AS scored,
           sum(unverified)::BIGINT AS unverified,
           sum(failed)::BIGINT AS failed,
           sum(missing)::BIGINT AS missing
    FROM per_task
    GROUP BY ALL
),
deviations AS (
    SELECT run_id, environment, agent,
           t.cluster, CASE WHEN t.cluster IS NULL THEN task_index END AS alone,
           sum(p.mean - l.score) AS deviation,
           count(*) AS tasks
    FROM per_task p
    JOIN lines l USING (run_id, environment, agent)
    JOIN (SELECT run_id, task_index, cluster FROM tasks) t USING (run_id, task_index)
    WHERE p.mean IS NOT NULL
    GROUP BY ALL
),
errors AS (
    SELECT run_id, environment, agent,
           count(*) AS groups,
           CASE WHEN count(*) > 1
                THEN finite(sqrt(count(*) / (count(*) - 1) * sum(deviation * deviation)) / sum(tasks)) END AS standard_error
    FROM deviations
    GROUP BY ALL
)
SELECT * REPLACE (coalesce(groups, 0) AS groups)
FROM lines LEFT JOIN errors USING (run_id, environment, agent)
ORDER BY run_id, environment, agent
