-- No tool was used, where the rollouts that pass use them.
-- root_cause: behaviour
-- intervention: skill_improvement
-- rank: 66
with passing as (
    select environment, agent, min(rollout_id) filter (tool_calls > 0) as example, any_value(tool_calls order by rollout_id)
        filter (tool_calls > 0) as used
    from facts.rollouts
    where passed
    group by all
    having count(*) >= 3 and count(*) filter (tool_calls > 0) >= 0.9 * count(*)
)
select f.rollout_id, unnest([f.rollout_id, p.example]) as cited, 'rollout/tool_calls' as locator,
       unnest(['0', p.used::varchar]) as shown
from facts.rollouts f
join passing p using (environment, agent)
where f.status = 'completed' and f.tool_calls = 0 and not f.turns_hidden
