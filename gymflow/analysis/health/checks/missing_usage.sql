-- The endpoint did not say what a call cost in tokens.
-- severity: info
-- applies: calls_hidden or ok_calls > 0
-- observed: not calls_hidden
select
    rollout_id, 'calls/' || min(call) as locator,
    format('{} of {} calls without token counts', count(*) filter (prompt_tokens is null or completion_tokens is null), count(*))
        as message
from facts.calls
where status = 'ok' and role = 'policy'
group by rollout_id
having count(*) filter (prompt_tokens is null or completion_tokens is null) > 0
