-- An answered call that is said to have cost no completion tokens.
-- severity: warning
-- applies: calls_hidden or ok_calls > 0
-- observed: not calls_hidden and metered_calls = ok_calls
select rollout_id, 'calls/' || call as locator, 'answered, with 0 completion tokens' as message
from facts.calls where status = 'ok' and completion_tokens = 0
