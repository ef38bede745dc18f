-- The verifier or its judge failed, not the agent.
-- root_cause: verifier_issue
-- intervention: verifier_repair
-- rank: 30
select rollout_id, rollout_id as cited, 'verdict/failure' as locator, verdict_failure as shown
from facts.rollouts where verdict_failure is not null
