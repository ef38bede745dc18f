-- A later prompt does not begin with the exact ids of the calls before it: such calls are not one training sequence.
-- severity: info
-- applies: token_calls > 0 and ok_calls > 1
-- observed: token_calls = ok_calls
select rollout_id, 'calls/' || call as locator, format('the prompt differs from position {} on', break_at) as message
from facts.calls where break_at is not null
