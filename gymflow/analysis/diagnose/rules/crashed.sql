-- The agent's own command crashed, or ran out of memory.
-- root_cause: behaviour
-- intervention: harness_work
-- rank: 61
select rollout_id, rollout_id as cited, 'rollout/stop_reason' as locator, stop_reason as shown
from facts.rollouts where stop_reason in ('agent_crash', 'out_of_memory', 'malformed_tool_calls')
