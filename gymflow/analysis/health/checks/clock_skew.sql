-- Times that cannot be: a call before or after its rollout, an end before its start.
-- severity: warning
-- applies: sampled_in is not null
select
    c.rollout_id, 'calls/' || c.call as locator,
    format('started {:.1f} s {} its rollout', abs(c.started_at - f.started_at),
           if(c.started_at < f.started_at, 'before', 'after the start of')) as message
from facts.calls c
join facts.rollouts f using (rollout_id)
where c.started_at < f.started_at - $clock_skew_s
   or c.started_at + c.duration_s > f.started_at + f.duration_s + $clock_skew_s
union all
select rollout_id, 'turns/' || turn || '/tool_calls/' || position, 'ended before it started'
from facts.tools where ended_at < started_at
union all
select rollout_id, 'rollout/duration_s', 'a negative duration' from facts.rollouts where duration_s < 0
