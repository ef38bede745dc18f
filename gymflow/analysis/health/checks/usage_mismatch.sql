-- The rollout's tokens are not the sum over its calls: the agent's, or those and a simulated user's. A judge's are the verdict's.
-- severity: error
-- applies: calls_hidden or ok_calls > 0
-- observed: not calls_hidden and metered_calls = ok_calls
select
    f.rollout_id, 'rollout/usage' as locator,
    format(
        'the rollout says {} + {} tokens, its calls {} + {}', f.prompt_tokens, f.completion_tokens, c.prompt, c.completion
    ) as message
from facts.rollouts f
join (
    select
        rollout_id, sum(prompt_tokens)::bigint as prompt, sum(completion_tokens)::bigint as completion,
        (sum(prompt_tokens) filter (role = 'policy'))::bigint as own_prompt,
        (sum(completion_tokens) filter (role = 'policy'))::bigint as own_completion
    from facts.calls
    where role not in ('judge', 'grader')
    group by rollout_id
) c using (rollout_id)
where f.metered_calls = f.ok_calls and f.ok_calls > 0
  and (f.prompt_tokens, f.completion_tokens) is distinct from (c.prompt, c.completion)
  and (f.prompt_tokens, f.completion_tokens) is distinct from (c.own_prompt, c.own_completion)
