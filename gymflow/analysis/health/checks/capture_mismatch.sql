-- Trajectory and recorded calls contradict each other.
-- severity: error
-- applies: turns > 0 or turns_hidden
-- observed: not turns_hidden and not calls_hidden
select t.rollout_id, 'turns/' || t.turn as locator, format('refers to call {}, which is not recorded', t.call) as message
from facts.turns t
anti join facts.calls c on c.rollout_id = t.rollout_id and c.call = t.call
where t.call is not null
union all
select c.rollout_id, 'calls/' || c.call, 'answered the agent, and no turn refers to it'
from facts.calls c
join facts.rollouts f using (rollout_id)
anti join facts.turns t on t.rollout_id = c.rollout_id and t.call = c.call
where c.role = 'policy' and c.status = 'ok' and f.turns > 0 and f.status = 'completed'
union all
select t.rollout_id, 'turns/' || t.turn, format('{} tool calls, where the model asked for {}', t.tool_calls, c.asked)
from facts.turns t
join facts.calls c on c.rollout_id = t.rollout_id and c.call = t.call
where t.tool_calls > c.asked
union all
select rollout_id, 'rollout/turns', format('the rollout says {} turns, its trajectory has {}', f.turns, count(t.turn))
from facts.rollouts f
left join facts.turns t using (rollout_id)
where f.status is not null and not f.turns_hidden
group by rollout_id, f.turns
having f.turns <> count(t.turn)
