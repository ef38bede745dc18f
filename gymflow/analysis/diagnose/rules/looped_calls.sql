-- The same tool call with the same answer, again and again.
-- root_cause: behaviour
-- intervention: harness_work
-- rank: 46
with placed as (
    select *, row_number() over (partition by rollout_id order by turn, position) as nth from facts.tools
),
grouped as (
    select *, nth - row_number() over (partition by rollout_id, name, asked, told order by nth) as stretch from placed
)
select rollout_id, rollout_id as cited, 'turns/' || turn || '/tool_calls/' || position || '/arguments' as locator, arguments as shown
from grouped
qualify count(*) over (partition by rollout_id, name, asked, told, stretch) >= $same_call_times
