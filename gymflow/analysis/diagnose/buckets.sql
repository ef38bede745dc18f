-- Tasks by how many of their scored repeats passed.
with per_task as (
    select environment, agent, task_index, any_value(task_id) as task_id,
           count(*) filter (outcome = 'scored') as scored, count(*) filter (passed) as passed
    from facts.rollouts group by all
)
select
    environment, agent, count(*) as tasks,
    count(*) filter (scored > 0 and passed = scored) as always,
    count(*) filter (passed > 0 and passed < scored) as sometimes,
    count(*) filter (scored > 0 and passed = 0) as never,
    count(*) filter (scored = 0) as missing,
    coalesce(arg_min(task_id, task_index, $examples) filter (passed > 0 and passed < scored), []) as sometimes_tasks,
    coalesce(arg_min(task_id, task_index, $examples) filter (scored > 0 and passed = 0), []) as never_tasks
from per_task
group by environment, agent
order by environment, agent
