-- A tool call that could not be executed: arguments that are no JSON or do not fit the schema, or a tool that does not exist.
-- severity: info
-- applies: tool_calls > 0 or turns_hidden
-- observed: not turns_hidden
select
    rollout_id, 'turns/' || turn || '/tool_calls/' || position as locator,
    case status when 'unknown_tool' then format('there is no tool {}', name)
         else format('{}: malformed arguments {}', name, left(arguments, 80)) end as message
from facts.tools where status in ('malformed', 'unknown_tool')
