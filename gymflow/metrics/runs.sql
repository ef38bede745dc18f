-- One row per environment and agent of every run, in the run's current verdict set. Scores are defined in scorecard.sql.
WITH per_task AS (
    SELECT run_id, environment, agent, task_key, task_id,
           avg(reward) AS mean,
           count(*) AS planned,
           count(*) FILTER (WHERE outcome = 'scored') AS scored,
           count(*) FILTER (WHERE outcome = 'unverified') AS unverified,
           count(*) FILTER (WHERE outcome = 'failed') AS failed,
           count(*) FILTER (WHERE outcome = 'missing') AS missing
    FROM outcomes
    WHERE is_current
    GROUP BY ALL
)
SELECT run_id, environment, agent,
       avg(mean) AS score,
       stddev_samp(mean) / sqrt(count(mean)) AS standard_error,
       sum(planned)::BIGINT AS planned,
       sum(scored)::BIGINT AS scored,
       sum(unverified)::BIGINT AS unverified,
       sum(failed)::BIGINT AS failed,
       sum(missing)::BIGINT AS missing
FROM per_task
GROUP BY ALL
ORDER BY run_id, environment, agent
