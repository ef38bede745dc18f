-- A command in the sandbox, or the agent, ran out of memory.
-- severity: warning
-- observed: not list_contains(gaps, 'no_sandbox_use')
select rollout_id, 'sandbox/' || position as locator, format('out of memory in {}', left(command, 80)) as message
from facts.sandbox where outcome = 'oom'
union all
select rollout_id, 'rollout/stop_reason', 'the agent ran out of memory'
from facts.rollouts where stop_reason = 'out_of_memory'
