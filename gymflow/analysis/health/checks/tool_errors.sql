-- Most of a rollout's tool calls failed.
-- severity: warning
-- applies: tool_calls > 0 or turns_hidden
-- observed: not turns_hidden
select
    rollout_id,
    'turns/' || arg_min(turn, (turn, position)) filter (status = 'error')
    || '/tool_calls/' || arg_min(position, (turn, position)) filter (status = 'error') as locator,
    format('{} of {} tool calls failed: {}', count(*) filter (status = 'error'), count(*),
           string_agg(distinct name, ', ') filter (status = 'error')) as message
from facts.tools
group by rollout_id
having count(*) filter (status = 'error') >= 2 and count(*) filter (status = 'error') >= $tool_error_share * count(*)
