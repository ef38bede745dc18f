-- Turns, calls, cost or time ran out before the agent was done.
-- root_cause: behaviour
-- intervention: harness_work
-- rank: 60
select rollout_id, rollout_id as cited, 'rollout/stop_reason' as locator, stop_reason as shown
from facts.rollouts where stop_reason in ('max_turns', 'call_budget', 'cost_budget', 'wall_time', 'environment_truncated')
