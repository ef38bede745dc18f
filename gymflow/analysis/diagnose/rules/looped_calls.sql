-- The same tool call with the same answer, again and again: in a row, or as most of what the agent does.
-- root_cause: behaviour
-- intervention: harness_work
-- rank: 46
with placed as (
    select
        *, row_number() over (partition by rollout_id order by turn, position) as nth,
        count(*) over (partition by rollout_id, name, asked, told) as times, count(*) over (partition by rollout_id) as executed
    from facts.tools where status <> 'not_executed'
),
grouped as (
    select
        *, nth - row_number() over (partition by rollout_id, name, asked, told order by nth) as stretch,
        count(*) filter (times >= $same_call_times) over (partition by rollout_id) >= $same_call_share * executed as going_round
    from placed
)
select rollout_id, rollout_id as cited, 'turns/' || turn || '/tool_calls/' || position || '/arguments' as locator, arguments as shown
from grouped
qualify count(*) over (partition by rollout_id, name, asked, told, stretch) >= $same_call_times
     or (times >= $same_call_times and going_round)
