-- Most tool calls could not be executed: arguments that are no JSON or do not fit, tools that do not exist.
-- root_cause: behaviour
-- intervention: harness_work
-- rank: 50
select t.rollout_id, t.rollout_id as cited, 'turns/' || turn || '/tool_calls/' || position || '/status' as locator, t.status as shown
from facts.tools t
join facts.rollouts f using (rollout_id)
where t.status in ('malformed', 'unknown_tool')
qualify count(*) over (partition by t.rollout_id) * 2 > f.tool_calls
