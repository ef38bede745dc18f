-- Infrastructure failed the rollout.
-- root_cause: infrastructure
-- intervention: infrastructure_repair
-- rank: 10
select rollout_id, rollout_id as cited, 'rollout/failure' as locator, failure as shown
from facts.rollouts where status = 'failed'
