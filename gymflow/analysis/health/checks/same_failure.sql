-- All repeats of a task failed in the same way: the cause lies with the task, not with luck.
-- severity: error
-- scope: task
select
    null as rollout_id, task_key, 'task/' || any_value(task_id) as locator,
    format('all {} repeats by {} failed: {}', count(*), agent, any_value(failure)) as message
from facts.rollouts
group by task_index, task_key, agent
having count(*) > 1 and count(*) filter (status = 'failed') = count(*) and count(distinct failure) = 1
