-- Every repeat of a task has a finding that is more than a remark.
-- severity: warning
-- scope: task
select
    null as rollout_id, f.task_key, 'task/' || any_value(f.task_id) as locator,
    format('all {} repeats by {} are unhealthy', count(*), f.agent) as message
from facts.rollouts f
left join (
    select distinct rollout_id, true as unhealthy from facts.findings where severity <> 'info' and rollout_id is not null
) using (rollout_id)
where f.status is not null
group by f.task_index, f.task_key, f.agent
having count(*) > 1 and count(unhealthy) = count(*)
