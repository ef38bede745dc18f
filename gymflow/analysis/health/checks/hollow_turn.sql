-- A turn with neither a message nor a tool call.
-- severity: warning
-- applies: turns > 0 or turns_hidden
-- observed: not turns_hidden
select t.rollout_id, 'turns/' || t.turn as locator, 'neither a message nor a tool call' as message
from facts.turns t
join facts.calls c on c.rollout_id = t.rollout_id and c.call = t.call
where c.status = 'ok' and c.said = 0 and c.asked = 0 and t.tool_calls = 0
  and coalesce(c.finish_reason, '') not in ('length', 'content_filter', 'refusal')
