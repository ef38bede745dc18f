-- A row per environment, agent and task (a row of the dataset), over _planned (planned.sql): `scored` and `passed` count rollouts,
-- `passed` those with a reward from the pass threshold on; `mean` and `variance` (ddof 1) are of the reward over scored rollouts, null
-- where there is none (for the variance, fewer than two, or where it is too large for a number). Parameter: $run_id.
WITH counted AS (
    SELECT environment, agent, task_index,
           count(*) AS planned,
           count(*) FILTER (WHERE outcome = 'scored') AS scored,
           count(*) FILTER (WHERE outcome = 'unverified') AS unverified,
           count(*) FILTER (WHERE outcome = 'failed') AS failed,
           count(*) FILTER (WHERE outcome = 'missing') AS missing,
           count(*) FILTER (WHERE passed) AS passed,
           mean_of(reward) AS mean,
           finite(var_samp(reward)) AS variance
    FROM _planned
    GROUP BY ALL
)
SELECT counted.*, t.cluster
FROM counted
LEFT JOIN (SELECT task_index, cluster FROM tasks WHERE run_id = $run_id) t USING (task_index)
ORDER BY environment, agent, task_index
