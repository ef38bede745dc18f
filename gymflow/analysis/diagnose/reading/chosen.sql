-- Rollouts that a person would want to have read: not passed, without a clear cause first, each task once before any twice.
select plan_index
from (
    select
        f.plan_index, coalesce(r.root_cause, 'unknown') not in ('unknown', 'knowledge_gap', 'unreliable_knowledge') as clear,
        row_number() over (partition by f.task_index, f.agent order by f.plan_index) as nth
    from facts.rollouts f
    left join facts.labels l on l.rollout_id = f.rollout_id
    left join facts.rules r using (cause)
    where f.status = 'completed' and not coalesce(f.passed, false)
)
order by clear, nth, plan_index
limit $readings
