-- What analysis asks of a run's evidence again and again, computed once: narrow rows without bodies, in the schema `facts`.
-- Parameters: $run_id, $verdict_set. The table facts.ranges (environment, low, high) is there already, facts.rollouts is made from
-- these by facts_rollouts.sql.
create table facts.calls as
with read as (
    select
        m.*,
        -- An output that is no list of items (a call that failed) has none.
        from_json(
            case when json_type(output) = 'ARRAY' then output else '[]' end,
            '[{"type": "VARCHAR", "content": "JSON", "summary": "JSON", "name": "VARCHAR", "arguments": "VARCHAR"}]'
        ) as items
    from model_calls m
    where run_id = $run_id
),
told as (
    select
        *,
        list_transform(
            list_filter(items, lambda i: coalesce(i.type, 'message') = 'message'),
            lambda i: case json_type(i.content)
                when 'VARCHAR' then i.content ->> '$'
                when 'ARRAY' then array_to_string(json_extract_string(i.content, '$[*].text'), ' ')
                else ''
            end
        ) as texts,
        array_to_string(
            list_transform(
                list_filter(items, lambda i: i.type = 'reasoning'),
                lambda i: array_to_string(
                    coalesce(json_extract_string(i.summary, '$[*].text'), [])
                    || coalesce(json_extract_string(i.content, '$[*].text'), []), ' '
                )
            ), ' '
        ) as reasoning,
        list_filter(items, lambda i: i.type = 'function_call') as functions
    from read
)
select
    rollout_id, call, role, invocation, turn, parent, model, reported_model, response_id, status, http_status, error_kind,
    left(error_message, 300) as error_message, finish_reason, attempts, started_at, duration_s, prompt_tokens,
    completion_tokens, try_cast(parameters ->> '$.temperature' as double) as temperature,
    strlen(trim(array_to_string(texts, ' ')))::bigint as said, len(functions)::bigint as asked,
    hash(texts, list_transform(functions, lambda f: (f.name, f.arguments))) as content,
    strlen(trim(thinking))::bigint as thought, hash(thinking) as thinking, t.chained, t.break_at
from (
    -- Where a model does not reason apart, what it says beside its tool calls is its reasoning.
    select *, if(trim(reasoning) = '', array_to_string(texts, ' '), reasoning) as thinking from told
)
left join (select rollout_id, call, chained, break_at from _tokens where run_id = $run_id) t using (rollout_id, call);

create table facts.turns as
select rollout_id, turn, invocation, call, tool_calls::bigint as tool_calls
from turns where run_id = $run_id;

create table facts.tools as
select
    rollout_id, turn, position, name, status, left(arguments, 300) as arguments,
    hash(arguments) as asked, hash(output) as told, started_at, ended_at
from tool_calls where run_id = $run_id;

create table facts.sandbox as
select rollout_id, unnest(range(len(used))) as position, unnest(used, recursive := true)
from (
    select
        rollout_id,
        from_json(
            trajectory -> '$.sandbox',
            '[{"command": "VARCHAR", "outcome": "VARCHAR", "started_at": "DOUBLE", "duration_s": "DOUBLE"}]'
        ) as used
    from evidence
    where run_id = $run_id and (trajectory -> '$.sandbox') <> '[]'
);

-- Environments in which a verdict of the set has an answer.
create table facts.extracting as
select distinct p.environment
from (
    select substr(rollout_id, strlen(run_id) + 2)::bigint as plan_index
    from verdicts
    where run_id = $run_id and verdict_set = $verdict_set and extracted_answer is not null
) v
join (select plan_index, environment from plan where run_id = $run_id) p using (plan_index);
