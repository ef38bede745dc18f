-- What analysis asks of a run's evidence again and again, computed once: narrow rows without bodies, in the schema `facts`.
-- Parameters: $run_id, $verdict_set. The table facts.ranges (environment, low, high) is there already. The column `extracts` is
-- true also where all rollouts lack an answer and the verifier looks for one, see facts.py.
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

create table facts.rollouts as
with called as (
    select
        rollout_id, count(*) as calls, count(*) filter (status = 'ok') as ok_calls,
        count(*) filter (status = 'ok' and prompt_tokens is not null and completion_tokens is not null) as metered_calls,
        count(*) filter (status = 'ok' and chained is not null) as token_calls,
        count(*) filter (status = 'ok' and reported_model <> '') as named_calls,
        sum(said)::bigint as said, hash(list(content order by call)) as content, max(temperature) as temperature
    from facts.calls where role = 'policy' group by rollout_id
),
gaps as (
    select rollout_id, json_extract_string(trajectory, '$.gaps[*].code') as gaps
    from evidence where run_id = $run_id and (trajectory -> '$.gaps') <> '[]'
),
last as (
    select rollout_id, max(seq) as seq from rollouts where run_id = $run_id group by rollout_id
),
held as (
    select r.* from rollouts r semi join last l on l.rollout_id = r.rollout_id and l.seq = r.seq where r.run_id = $run_id
),
extracting as (
    select environment, bool_or(extracted_answer is not null) as extracts
    from outcomes where run_id = $run_id and verdict_set is not distinct from $verdict_set group by environment
)
select
    o.rollout_id, o.plan_index, o.task_index, o.task_key, o.task_id, o.environment, o.agent, o.repeat, h.status, o.stop_reason,
    o.failure, h.failure_message, o.outcome, o.reward, o.passed, o.extracted_answer, left(o.reason, 300) as reason,
    o.verdict_failure, h.model, h.started_at, h.duration_s, h.prompt_tokens, h.completion_tokens,
    coalesce(h.attempts, 0) as attempts, h.sampled_in, coalesce(h.turns, 0) as turns, coalesce(h.tool_calls, 0) as tool_calls,
    coalesce(c.calls, 0) as calls, coalesce(c.ok_calls, 0) as ok_calls, coalesce(c.metered_calls, 0) as metered_calls,
    coalesce(c.token_calls, 0) as token_calls, coalesce(c.named_calls, 0) as named_calls, coalesce(c.said, 0) as said,
    c.content, c.temperature, coalesce(g.gaps, []) as gaps,
    list_contains(coalesce(g.gaps, []), 'no_model_calls') as calls_hidden,
    list_contains(coalesce(g.gaps, []), 'no_turns') as turns_hidden, r.low, r.high, x.extracts
from outcomes o
left join held h on h.rollout_id = o.rollout_id
left join called c on c.rollout_id = o.rollout_id
left join gaps g on g.rollout_id = o.rollout_id
left join facts.ranges r on r.environment = o.environment
left join extracting x on x.environment = o.environment
where o.run_id = $run_id and o.verdict_set is not distinct from $verdict_set;

-- Of a rollout with two records that count, one row; afterwards, since telling them apart above would hold all rows at once.
delete from facts.rollouts where rowid not in (select min(rowid) from facts.rollouts group by rollout_id);
