-- A planned rollout of which nothing is durable.
-- severity: warning
-- scope: run
select rollout_id, task_key, null as locator, 'planned, and nothing of it is stored; resume the run' as message
from facts.rollouts where status is null
