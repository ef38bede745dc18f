-- The agent solves the task in other repeats.
-- root_cause: unreliable_knowledge
-- intervention: model_training
-- rank: 80
with solved as (
    select task_index, agent, min(rollout_id) as example from facts.rollouts where passed group by all
)
select f.rollout_id, unnest([f.rollout_id, s.example]) as cited, 'verdict/passed' as locator, unnest(['false', 'true']) as shown
from facts.rollouts f
join solved s using (task_index, agent)
where f.outcome = 'scored'
