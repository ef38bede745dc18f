-- The last call of a completed rollout failed: what was scored is what stood there before. A dead judge or user cannot hide it.
-- severity: error
-- applies: status = 'completed' and (calls_hidden or calls > 0)
-- observed: not calls_hidden
select rollout_id, 'calls/' || call as locator, format('the last of {} calls failed', total) as message
from (
    select
        c.rollout_id, c.call, c.status, f.calls as total,
        row_number() over (partition by c.rollout_id order by c.call desc) as back
    from facts.calls c
    join facts.rollouts f using (rollout_id)
    where c.role = 'policy' and f.status = 'completed'
      and not (f.stop_reason is not distinct from 'context_overflow' and c.error_kind is null)
)
where back = 1 and status = 'error'
