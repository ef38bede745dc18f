-- Temporary tables over a slice of one run's tasks in one verdict set, from which its statistics are made, slice by slice: so the memory
-- that they take does not grow with the run. Parameters: $run_id, $verdict_set, $first and $end (task_index, from and to before).
-- _planned: a row per planned rollout, what `outcomes` (views.sql) has of the run and the set, joined by the number that is all that
-- ids of one run differ in. What is joined is first cut down to the slice, and narrow: a join holds it whole.
DROP TABLE IF EXISTS _planned;

CREATE OR REPLACE TEMP TABLE _slice AS
SELECT plan_index::INTEGER AS plan_index, task_index, environment, agent
FROM plan
WHERE run_id = $run_id AND task_index >= $first AND task_index < $end
  AND ($verdict_set IS NULL OR EXISTS (SELECT 1 FROM verdict_sets WHERE run_id = $run_id AND verdict_set = $verdict_set));

CREATE TEMP TABLE _planned AS
SELECT p.environment, p.agent, p.task_index, outcome_of(r.status, v.reward) AS outcome,
       v.reward, v.passed, v.extracted_answer, v.components
FROM _slice p
LEFT JOIN (
    SELECT plan_index::INTEGER AS plan_index, status::ENUM ('completed', 'failed') AS status
    FROM rollouts SEMI JOIN _slice USING (plan_index)
    WHERE run_id = $run_id
) r USING (plan_index)
LEFT JOIN (
    SELECT *
    FROM (
        SELECT substr(rollout_id, strlen(run_id) + 2)::INTEGER AS plan_index, reward, passed, extracted_answer, components
        FROM verdicts
        WHERE run_id = $run_id AND verdict_set = $verdict_set
    ) SEMI JOIN _slice USING (plan_index)
) v ON v.plan_index = r.plan_index;

DROP TABLE _slice;
