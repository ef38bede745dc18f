-- The same tool call with the same answer, again and again.
-- severity: warning
-- applies: tool_calls > 0 or turns_hidden
-- observed: not turns_hidden
with placed as (
    select *, row_number() over (partition by rollout_id order by turn, position) as nth from facts.tools
),
grouped as (
    select *, nth - row_number() over (partition by rollout_id, name, asked, told order by nth) as stretch from placed
)
select
    rollout_id, 'turns/' || arg_min(turn, nth) || '/tool_calls/' || arg_min(position, nth) as locator,
    format('{}({}) {} times in a row, with the same answer', name, left(any_value(arguments), 80), count(*)) as message
from grouped
group by rollout_id, name, asked, told, stretch
having count(*) >= $same_call_times
