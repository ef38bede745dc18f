-- The agent's own model calls, per environment and agent. Parameter: $run_id. Latency of those that ended well, in seconds.
-- A join holds one side whole: of a rollout no more than two numbers.
WITH lines AS (
    SELECT environment, agent, row_number() OVER (ORDER BY environment, agent)::USMALLINT AS line
    FROM (SELECT DISTINCT environment, agent FROM rollouts WHERE run_id = $run_id)
),
counted AS (
    SELECT r.line,
           count(*) AS calls,
           count(*) FILTER (WHERE c.status = 'error') AS errors,
           {count: count(c.duration_s) FILTER (WHERE c.status = 'ok'), mean: avg(c.duration_s) FILTER (WHERE c.status = 'ok'),
            max: max(c.duration_s) FILTER (WHERE c.status = 'ok'),
            q: quantile_cont(c.duration_s, [0.5, 0.9, 0.99]) FILTER (WHERE c.status = 'ok')} AS latency_s,
           {count: count(c.first_token_s), mean: avg(c.first_token_s), max: max(c.first_token_s),
            q: quantile_cont(c.first_token_s, [0.5, 0.9, 0.99])} AS first_token_s
    FROM (SELECT seq::INTEGER AS seq, status, duration_s, first_token_s FROM model_calls WHERE run_id = $run_id AND role = 'policy') c
    JOIN (
        SELECT seq::INTEGER AS seq, line
        FROM (SELECT seq, environment, agent FROM rollouts WHERE run_id = $run_id) JOIN lines USING (environment, agent)
    ) r USING (seq)
    GROUP BY ALL
)
SELECT environment, agent, counted.* EXCLUDE (line) FROM counted JOIN lines USING (line)
