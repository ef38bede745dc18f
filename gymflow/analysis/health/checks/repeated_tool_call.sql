-- The same tool call with the same answer, again and again: in a row, or as most of what the agent does.
-- severity: warning
-- applies: tool_calls > 0 or turns_hidden
-- observed: not turns_hidden
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
),
stretches as (
    select
        rollout_id, name, asked, told, any_value(times) as times, any_value(going_round) as going_round, count(*) as in_a_row,
        arg_min((turn, position, arguments), nth) as first, min(nth) as nth
    from grouped
    group by rollout_id, name, asked, told, stretch
),
longest as (
    select * from stretches
    qualify row_number() over (partition by rollout_id, name, asked, told order by in_a_row desc, nth) = 1
)
select
    rollout_id, 'turns/' || first[1] || '/tool_calls/' || first[2] as locator,
    format(
        '{}({}) {} times{}, with the same answer', name, left(first[3], 80),
        if(in_a_row >= $same_call_times, in_a_row, times), if(in_a_row >= $same_call_times, ' in a row', ', others between')
    ) as message
from longest
where in_a_row >= $same_call_times or (times >= $same_call_times and going_round)
