-- What keeps each task's mean from the top of the range, by label: the losses of a task and its mean add up to the top.
select
    environment, agent, task_key, any_value(task_id) as task_id, coalesce(root_cause || ': ' || cause, 'no label') as label,
    sum(high - reward) / any_value(n) as loss, any_value(mean) as mean
from (
    select f.*, r.root_cause, r.cause, count(*) over tasks as n, avg(f.reward) over tasks as mean
    from facts.rollouts f
    left join facts.labels l using (rollout_id)
    left join facts.rules r using (cause)
    where f.reward is not null
    window tasks as (partition by f.environment, f.agent, f.task_key)
)
group by environment, agent, task_key, root_cause, cause
order by environment, agent, task_key, label
