-- One row per environment and agent of a run, in one verdict set. Parameters: $run_id, $verdict_set.
-- score: mean over tasks of the per-task mean over scored rollouts.
-- standard_error: of that mean over tasks (clustered by task; Miller 2024, arXiv:2411.00640): s(task means) / sqrt(tasks).
-- A task without a scored rollout is counted in `unscored_tasks`, never as zero.
WITH planned AS (
    SELECT environment, agent, task_key, task_id, rollout_id, outcome, reward, passed
    FROM outcomes
    WHERE run_id = $run_id AND verdict_set IS NOT DISTINCT FROM $verdict_set
),
per_task AS (
    SELECT environment, agent, task_key, task_id,
           avg(reward) AS mean,
           count(reward) AS scored,
           count(*) FILTER (WHERE passed) AS passed,
           avg(passed::INT) AS pass_rate
    FROM planned
    GROUP BY ALL
),
scores AS (
    SELECT environment, agent,
           count(*) AS tasks,
           count(*) FILTER (WHERE scored = 0) AS unscored_tasks,
           avg(mean) AS score,
           stddev_samp(mean) / sqrt(count(mean)) AS standard_error,
           avg(pass_rate) AS pass_rate,
           count(*) FILTER (WHERE passed = scored AND scored > 0) AS always,
           count(*) FILTER (WHERE passed BETWEEN 1 AND scored - 1) AS sometimes,
           count(*) FILTER (WHERE passed = 0 AND scored > 0) AS never,
           min(scored) AS least_repeats,
           max(scored) AS most_repeats
    FROM per_task
    GROUP BY ALL
),
counts AS (
    SELECT environment, agent,
           count(*) AS rollouts,
           count(*) FILTER (WHERE outcome = 'scored') AS scored,
           count(*) FILTER (WHERE outcome = 'unverified') AS unverified,
           count(*) FILTER (WHERE outcome = 'failed') AS failed,
           count(*) FILTER (WHERE outcome = 'missing') AS missing
    FROM planned
    GROUP BY ALL
),
costs AS (
    SELECT environment, agent,
           sum(prompt_tokens)::BIGINT AS prompt_tokens,
           sum(completion_tokens)::BIGINT AS completion_tokens,
           sum(cost_usd) AS cost_usd,
           median(duration_s) AS median_duration_s,
           max(started_at + duration_s) - min(started_at) AS elapsed_s,
           count(*) FILTER (WHERE sampled_in <> run_id) AS reused
    FROM rollouts
    WHERE run_id = $run_id
    GROUP BY ALL
)
SELECT * REPLACE (coalesce(reused, 0) AS reused) FROM scores JOIN counts USING (environment, agent) LEFT JOIN costs USING (environment, agent)
ORDER BY environment, agent
