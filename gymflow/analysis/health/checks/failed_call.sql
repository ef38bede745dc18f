-- A model call that failed for good. A history that outgrew the context is the agent's doing and not counted.
-- severity: warning
-- applies: calls > 0 or calls_hidden
-- observed: not calls_hidden
select
    c.rollout_id, 'calls/' || c.call as locator,
    format(
        '{} ({}) after {} attempts: {}', coalesce(c.error_kind, 'unanswered'),
        coalesce('HTTP ' || c.http_status, 'no status'), c.attempts, left(coalesce(c.error_message, ''), 120)
    ) as message
from facts.calls c
join facts.rollouts f using (rollout_id)
where c.status = 'error' and not (f.stop_reason is not distinct from 'context_overflow' and c.error_kind is null)
