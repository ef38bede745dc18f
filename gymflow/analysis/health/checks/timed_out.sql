-- Time ran out: for the agent, a model call or the verifier.
-- severity: warning
select rollout_id, 'rollout/stop_reason' as locator, 'the agent''s wall time ran out' as message
from facts.rollouts where stop_reason = 'wall_time'
union all
select rollout_id, 'calls/' || call, format('model call timed out after {} attempts', attempts)
from facts.calls where error_kind = 'model_timeout'
union all
select rollout_id, 'verdict/failure', 'the verifier timed out'
from facts.rollouts where verdict_failure = 'verifier_timeout'
