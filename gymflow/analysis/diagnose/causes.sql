-- Labels by kind, with the first few rollouts of each.
select
    f.environment, f.agent, r.root_cause, r.cause, r.about, r.intervention, count(*) as rollouts,
    count(distinct f.task_index) as tasks, arg_min(f.rollout_id, f.plan_index, $examples) as examples
from facts.labels l
join facts.rules r using (cause)
join facts.rollouts f on f.rollout_id = l.rollout_id
group by all
order by rollouts desc, f.environment, f.agent, r.cause
