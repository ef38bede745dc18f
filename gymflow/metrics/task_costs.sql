-- _per_task (per_task.sql) with what the task is, and what a rollout of it took on average. Parameter: $run_id. Times in seconds, money
-- in US dollars.
SELECT t.* EXCLUDE (cluster), k.task_key, k.row_digest, k.task_id, k.split, k.tags, t.cluster,
       c.* EXCLUDE (environment, agent, task_index)
FROM _per_task t
LEFT JOIN (SELECT * EXCLUDE (environment, cluster) FROM tasks WHERE run_id = $run_id) k USING (task_index)
LEFT JOIN (
    SELECT r.environment, r.agent, p.task_index,
           avg(r.prompt_tokens) AS prompt_tokens, avg(r.completion_tokens) AS completion_tokens,
           avg(r.cost_usd) AS cost_usd, avg(r.turns) AS turns, avg(r.duration_s) AS duration_s
    FROM (SELECT * FROM rollouts WHERE run_id = $run_id) r
    JOIN (SELECT plan_index, task_index FROM plan WHERE run_id = $run_id) p USING (plan_index)
    GROUP BY ALL
) c USING (environment, agent, task_index)
ORDER BY t.environment, t.agent, t.task_index
