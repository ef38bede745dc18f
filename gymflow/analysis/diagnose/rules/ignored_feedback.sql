-- A tool call that had failed was made again as it was.
-- root_cause: behaviour
-- intervention: skill_improvement
-- rank: 52
select rollout_id, rollout_id as cited, 'turns/' || turn || '/tool_calls/' || position || '/status' as locator, status as shown
from facts.tools
where status = 'error'
qualify count(*) over (partition by rollout_id, name, asked) > 1
