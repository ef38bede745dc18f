-- The agent's own model calls, per environment and agent. Parameter: $run_id. Latency of those that ended well, in seconds.
SELECT r.environment, r.agent,
       count(*) AS calls,
       count(*) FILTER (WHERE c.status = 'error') AS errors,
       {count: count(c.duration_s) FILTER (WHERE c.status = 'ok'), mean: avg(c.duration_s) FILTER (WHERE c.status = 'ok'),
        max: max(c.duration_s) FILTER (WHERE c.status = 'ok'),
        q: quantile_cont(c.duration_s, [0.5, 0.9, 0.99]) FILTER (WHERE c.status = 'ok')} AS latency_s,
       {count: count(c.first_token_s), mean: avg(c.first_token_s), max: max(c.first_token_s),
        q: quantile_cont(c.first_token_s, [0.5, 0.9, 0.99])} AS first_token_s
FROM model_calls c
JOIN rollouts r ON r.run_id = c.run_id AND r.seq = c.seq
WHERE c.run_id = $run_id AND r.run_id = $run_id AND c.role = 'policy'
GROUP BY ALL
