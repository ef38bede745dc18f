-- A call that used up its output tokens and said nothing.
-- severity: warning
-- applies: calls_hidden or ok_calls > 0
-- observed: not calls_hidden
select
    rollout_id, 'calls/' || call as locator,
    format('stopped by the length limit after {} tokens, nothing said', coalesce(completion_tokens::varchar, '?')) as message
from facts.calls where status = 'ok' and finish_reason = 'length' and said = 0 and asked = 0
