-- Another row asks the same of the agent and holds the answer for right that is wrong here.
-- root_cause: data_artifact
-- intervention: data_repair
-- rank: 21
with pairs as (
    select f.rollout_id, min(o.rollout_id) as other
    from facts.rollouts f
    join facts.rollouts o
      on o.environment = f.environment and o.task_key = f.task_key and o.task_index <> f.task_index
     and o.extracted_answer = f.extracted_answer
    where f.outcome = 'scored' and not f.passed and o.passed
    group by f.rollout_id
)
select rollout_id, unnest([rollout_id, other]) as cited, 'verdict/passed' as locator, unnest(['false', 'true']) as shown
from pairs
