-- The model refused.
-- root_cause: behaviour
-- intervention: prompt_change
-- rank: 62
select rollout_id, rollout_id as cited, 'rollout/stop_reason' as locator, stop_reason as shown
from facts.rollouts where stop_reason = 'refusal'
