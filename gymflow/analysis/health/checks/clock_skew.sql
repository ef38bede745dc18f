-- Times that cannot be: a call, a tool or a command before or after its rollout, an end before its start.
-- severity: warning
-- applies: sampled_in is not null
with timed as (
    select rollout_id, 'calls/' || call as locator, started_at, started_at + duration_s as ended_at from facts.calls
    union all
    select rollout_id, 'turns/' || turn || '/tool_calls/' || position, started_at, ended_at from facts.tools
    union all
    select rollout_id, 'sandbox/' || position, started_at, started_at + duration_s from facts.sandbox
),
placed as (
    select
        rollout_id, locator, t.ended_at - t.started_at as took, f.started_at - t.started_at as early,
        t.ended_at - (f.started_at + f.duration_s) as late
    from timed t
    join facts.rollouts f using (rollout_id)
    where f.duration_s >= 0
)
select
    rollout_id, locator,
    case
        when took < 0 then format('ended {:.1f} s before it started', -took)
        when early > $clock_skew_s then format('started {:.1f} s before its rollout', early)
        else format('ended {:.1f} s after its rollout', late)
    end as message
from placed
where took < 0 or early > $clock_skew_s or late > $clock_skew_s
union all
select rollout_id, 'rollout/duration_s', format('ended {:.1f} s before it started', -duration_s)
from facts.rollouts where duration_s < 0
