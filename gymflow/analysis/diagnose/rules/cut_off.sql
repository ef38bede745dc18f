-- The answer was cut off: output tokens, token budget or context ran out.
-- root_cause: truncation
-- intervention: harness_work
-- rank: 55
select rollout_id, rollout_id as cited, 'rollout/stop_reason' as locator, stop_reason as shown
from facts.rollouts where stop_reason in ('max_output_tokens', 'token_budget', 'context_overflow')
