-- For each intervention the rollouts that speak for it, and the score if all of them had the top reward (upper bound of the gain).
-- A labelled rollout without a reward would get one; a task that has none yet would then count.
with labelled as (
    select f.rollout_id, f.plan_index, f.environment, f.agent, f.task_index, f.reward, r.cause, r.intervention
    from facts.labels l
    join facts.rules r using (cause)
    join facts.rollouts f on f.rollout_id = l.rollout_id
),
per_task as (
    select environment, agent, task_index, count(reward) as n, sum(reward) as total, any_value(high) as top
    from facts.rollouts group by all
),
score as (select environment, agent, avg(total / n) filter (n > 0) as now from per_task group by all),
cured as (
    select environment, agent, task_index, intervention, count(*) as cured, count(reward) as scored,
           coalesce(sum(reward), 0) as lost
    from labelled group by all
),
would_be as (
    select
        i.environment, i.agent, i.intervention,
        avg((coalesce(t.total, 0) - coalesce(c.lost, 0) + t.top * coalesce(c.cured, 0))
            / nullif(t.n + coalesce(c.cured - c.scored, 0), 0)) as then
    from (select distinct environment, agent, intervention from labelled) i
    join per_task t using (environment, agent)
    left join cured c
      on c.environment = i.environment and c.agent = i.agent and c.intervention = i.intervention and c.task_index = t.task_index
    group by all
),
kinds as (
    select environment, agent, intervention, map(list(cause order by n desc, cause), list(n order by n desc, cause)) as causes
    from (select environment, agent, intervention, cause, count(*) as n from labelled group by all)
    group by all
)
select
    intervention, environment, agent, count(*) as rollouts, count(distinct task_index) as tasks,
    any_value(kinds.causes) as causes, any_value(w.then - s.now) as gain,
    arg_min(rollout_id, plan_index, $examples) as supported_by
from labelled
join kinds using (environment, agent, intervention)
join would_be w using (environment, agent, intervention)
join score s using (environment, agent)
group by intervention, environment, agent
order by gain desc nulls last, rollouts desc, intervention
