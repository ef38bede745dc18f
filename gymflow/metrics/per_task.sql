-- Temporary tables over one run in one verdict set, from which its statistics are made. Parameters: $run_id, $verdict_set.
-- _planned: a row per planned rollout. _per_task: a row per environment, agent and task (a row of the dataset): `scored` and `passed`
-- count rollouts, `passed` those with a reward from the pass threshold on; `mean` and `variance` (ddof 1) are of the reward over scored
-- rollouts, null where there is none (for the variance, fewer than two, or where it is too large for a number).
CREATE OR REPLACE TEMP TABLE _planned AS
SELECT environment, agent, task_index, outcome, reward, passed, extracted_answer, components
FROM outcomes
WHERE run_id = $run_id AND verdict_set IS NOT DISTINCT FROM $verdict_set;

CREATE OR REPLACE TEMP TABLE _per_task AS
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
SELECT counted.*, t.task_key, t.row_digest, t.task_id, t.split, t.tags, t.cluster
FROM counted
LEFT JOIN (SELECT * EXCLUDE (environment) FROM tasks WHERE run_id = $run_id) t USING (task_index)
ORDER BY environment, agent, task_index;
