-- A row per planned rollout of a slice, what `outcomes` (views.sql) says of it and what facts.sql has found: joins hold a slice at a
-- time, not the run. Parameters: $run_id, $verdict_set, $first and $end (plan_index, from and to before). The column `extracts` is true
-- also where all rollouts lack an answer and the verifier looks for one, see facts.py. Of a rollout with two records that count
-- there is one row.
with planned as (
    select
        run_id || '-' || plan_index as rollout_id, plan_index, task_index, task_key, task_id, environment, agent, repeat
    from plan
    where run_id = $run_id and plan_index >= $first and plan_index < $end
      and ($verdict_set is null or exists (select 1 from verdict_sets where run_id = $run_id and verdict_set = $verdict_set))
),
records as (
    select * from rollouts where run_id = $run_id and plan_index >= $first and plan_index < $end
),
held as (
    select r.* from records r semi join (
        select rollout_id, max(seq) as seq from records group by rollout_id
    ) last on last.rollout_id = r.rollout_id and last.seq = r.seq
),
judged as (
    select rollout_id, reward, passed, extracted_answer, left(reason, 300) as reason, failure as verdict_failure
    from verdicts
    where run_id = $run_id and verdict_set = $verdict_set
      and substr(rollout_id, strlen(run_id) + 2)::bigint >= $first and substr(rollout_id, strlen(run_id) + 2)::bigint < $end
),
called as (
    select
        rollout_id, count(*) as calls, count(*) filter (status = 'ok') as ok_calls,
        count(*) filter (status = 'ok' and prompt_tokens is not null and completion_tokens is not null) as metered_calls,
        count(*) filter (status = 'ok' and chained is not null) as token_calls,
        count(*) filter (status = 'ok' and reported_model <> '') as named_calls,
        sum(said)::bigint as said, hash(list(content order by call)) as content, max(temperature) as temperature
    from facts.calls
    where role = 'policy' and substr(rollout_id, strlen($run_id) + 2)::bigint >= $first
      and substr(rollout_id, strlen($run_id) + 2)::bigint < $end
    group by rollout_id
),
gaps as (
    select rollout_id, json_extract_string(trajectory, '$.gaps[*].code') as gaps
    from evidence
    where run_id = $run_id and plan_index >= $first and plan_index < $end and (trajectory -> '$.gaps') <> '[]'
)
select distinct on (p.plan_index)
    p.rollout_id, p.plan_index, p.task_index, p.task_key, p.task_id, p.environment, p.agent, p.repeat, h.status, h.stop_reason,
    h.failure, h.failure_message, outcome_of(h.status, v.reward)::varchar as outcome, v.reward, v.passed, v.extracted_answer,
    v.reason, v.verdict_failure, h.model, h.started_at, h.duration_s, h.prompt_tokens, h.completion_tokens,
    coalesce(h.attempts, 0) as attempts, h.sampled_in, coalesce(h.turns, 0) as turns, coalesce(h.tool_calls, 0) as tool_calls,
    coalesce(c.calls, 0) as calls, coalesce(c.ok_calls, 0) as ok_calls, coalesce(c.metered_calls, 0) as metered_calls,
    coalesce(c.token_calls, 0) as token_calls, coalesce(c.named_calls, 0) as named_calls, coalesce(c.said, 0) as said,
    c.content, c.temperature, coalesce(g.gaps, []) as gaps,
    list_contains(coalesce(g.gaps, []), 'no_model_calls') as calls_hidden,
    list_contains(coalesce(g.gaps, []), 'no_turns') as turns_hidden, r.low, r.high, x.environment is not null as extracts
from planned p
left join held h on h.rollout_id = p.rollout_id
left join judged v on v.rollout_id = h.rollout_id
left join called c on c.rollout_id = p.rollout_id
left join gaps g on g.rollout_id = p.rollout_id
left join facts.ranges r on r.environment = p.environment
left join facts.extracting x on x.environment = p.environment
