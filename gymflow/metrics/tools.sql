-- The calls of every tool, per environment and agent. Parameter: $run_id. Latency where it was observed, in seconds.
SELECT r.environment, r.agent, c.name,
       count(*) AS calls,
       count(*) FILTER (WHERE c.status <> 'ok') AS errors,
       {count: count(c.duration_s), mean: avg(c.duration_s), max: max(c.duration_s),
        q: quantile_cont(c.duration_s, [0.5, 0.9, 0.99])} AS latency_s
FROM tool_calls c
JOIN rollouts r USING (run_id, rollout_id)
WHERE c.run_id = $run_id AND r.run_id = $run_id
GROUP BY ALL
ORDER BY calls DESC, c.name
