-- Temporary tables over one run in one verdict set, from which its statistics are made. Parameters: $run_id, $verdict_set.
-- _planned: a row per planned rollout. _per_task: a row per environment, agent and task (a row of the dataset): `scored` and `passed`
-- count rollouts, `passed` those with a reward from the pass threshold on; `mean` and `variance` (ddof 1) are of the reward over scored
-- rollouts, null where there is none (for the variance, fewer than two, or where it is too large for a number).
-- _planned is what `outcomes` (views.sql) has of the run and the set, joined by the number that is all that ids of one run differ in:
-- half the memory of a join by the ids.
CREATE OR REPLACE TEMP TABLE _planned AS
SELECT p.environment, p.agent, p.task_index, outcome_of(r.status, v.reward) AS outcome,
       v.reward, v.passed, v.extracted_answer, v.components
FROM (SELECT plan_index, task_index, environment, agent FROM plan WHERE run_id = $run_id) p
LEFT JOIN (SELECT plan_index, status FROM rollouts WHERE run_id = $run_id) r USING (plan_index)
LEFT JOIN (
    SELECT substr(rollout_id, strlen(run_id) + 2)::BIGINT AS plan_index, reward, passed, extracted_answer, components
    FROM verdicts
    WHERE run_id = $run_id AND verdict_set = $verdict_set
) v ON v.plan_index = r.plan_index
WHERE $verdict_set IS NULL
   OR EXISTS (SELECT 1 FROM verdict_sets WHERE run_id = $run_id AND verdict_set = $verdict_set);

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
SELECT counted.*, t.cluster
FROM counted
LEFT JOIN (SELECT task_index, cluster FROM tasks WHERE run_id = $run_id) t USING (task_index)
ORDER BY environment, agent, task_index;
