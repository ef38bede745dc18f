-- The same reasoning in call after call, word for word; where a model does not reason apart, the same message.
-- severity: warning
-- applies: calls_hidden or ok_calls > 1
-- observed: not calls_hidden
with placed as (
    select *, row_number() over (partition by rollout_id, invocation order by call) as nth
    from facts.calls where role = 'policy' and status = 'ok'
),
grouped as (
    select *, nth - row_number() over (partition by rollout_id, invocation, thinking order by nth) as stretch from placed
)
select
    rollout_id, 'calls/' || min(call) as locator,
    format('the same {} characters of reasoning in {} calls in a row', any_value(thought), count(*)) as message
from grouped
where thought >= $same_reasoning_chars
group by rollout_id, invocation, thinking, stretch
having count(*) >= $same_reasoning_times
