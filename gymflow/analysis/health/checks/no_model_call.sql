-- A completed rollout in which no model was called: the agent never ran.
-- severity: error
-- applies: status = 'completed'
-- observed: not calls_hidden
select rollout_id, 'rollout/model_calls' as locator, 'completed without any model call' as message
from facts.rollouts where status = 'completed' and calls = 0 and not calls_hidden
