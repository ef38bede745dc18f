-- One row per task and agent of a run, in one verdict set; the worst first, among equals those with more to explain.
-- Parameters: $run_id, $verdict_set.
SELECT environment, agent, task_id, task_key,
       count(*) AS rollouts,
       count(*) FILTER (WHERE outcome = 'scored') AS scored,
       count(*) FILTER (WHERE passed) AS passed,
       mean_of(reward) AS reward,
       count(*) FILTER (WHERE outcome = 'unverified') AS unverified,
       count(*) FILTER (WHERE outcome = 'failed') AS failed,
       count(*) FILTER (WHERE outcome = 'missing') AS missing
FROM outcomes
WHERE run_id = $run_id AND verdict_set IS NOT DISTINCT FROM $verdict_set
GROUP BY ALL
ORDER BY reward NULLS FIRST, missing + failed + unverified DESC, environment, task_id, agent
