-- What the rollouts of a run took, per environment and agent, failed ones included. Parameter: $run_id. Times in seconds.
SELECT environment, agent,
       count(*) AS rollouts,
       count(*) FILTER (WHERE sampled_in <> run_id) AS reused,
       {prompt: sum(prompt_tokens), completion: sum(completion_tokens), reasoning: sum(reasoning_tokens),
        cached: sum(cached_tokens), cache_write: sum(cache_write_tokens)} AS tokens,
       {prompt: count(prompt_tokens), completion: count(completion_tokens), reasoning: count(reasoning_tokens),
        cached: count(cached_tokens), cache_write: count(cache_write_tokens)} AS reported,
       {count: count(turns), mean: avg(turns), max: max(turns), q: quantile_cont(turns::INTEGER, [0.5, 0.9, 0.99])} AS turns,
       {count: count(tool_calls), mean: avg(tool_calls), max: max(tool_calls),
        q: quantile_cont(tool_calls::INTEGER, [0.5, 0.9, 0.99])} AS tool_calls,
       {count: count(duration_s), mean: avg(duration_s), max: max(duration_s),
        q: quantile_cont(duration_s, [0.5, 0.9, 0.99])} AS wall_s,
       sum(cost_usd) AS cost_usd,
       count(cost_usd) AS priced,
       avg(prompt_tokens + completion_tokens) AS tokens_per_rollout
FROM rollouts
WHERE run_id = $run_id
GROUP BY ALL
