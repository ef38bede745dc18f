-- Time ran out: for the agent, a model call, a command in the sandbox or the verifier.
-- severity: warning
-- observed: not calls_hidden and not list_contains(gaps, 'no_sandbox_use')
select rollout_id, 'rollout/stop_reason' as locator, 'the agent''s wall time ran out' as message
from facts.rollouts where stop_reason = 'wall_time'
union all
select rollout_id, 'calls/' || call, format('model call timed out after {} attempts', attempts)
from facts.calls where error_kind = 'model_timeout'
union all
select rollout_id, 'sandbox/' || position, format('timed out after {:.1f} s: {}', duration_s, left(command, 80))
from facts.sandbox where outcome = 'timeout'
union all
select rollout_id, 'verdict/failure', 'the verifier timed out'
from facts.rollouts where verdict_failure = 'verifier_timeout'
