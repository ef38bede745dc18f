-- A call within an invocation whose history does not continue an earlier one: something was cut out or rewritten.
-- severity: warning
-- applies: calls > 1
-- observed: not list_contains(gaps, 'no_history')
select rollout_id, 'calls/' || call as locator, 'its history does not continue that of an earlier call' as message
from (
    select *, row_number() over (partition by rollout_id, role, invocation order by call) as place
    from facts.calls where role = 'policy' and status = 'ok'
)
where place > 1 and parent is null
union all
select rollout_id, 'rollout/stop_reason', 'the history outgrew the model''s context'
from facts.rollouts where stop_reason = 'context_overflow'
