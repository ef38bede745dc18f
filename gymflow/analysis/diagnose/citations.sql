-- Every citation beside what stands at its place, read from the store's own views and not from what the rules read.
-- A slice of facts.citations: joins hold no more. Parameters: $run_id, $verdict_set, $first and $end (rows of it, from and to before).
with slice as (select * from facts.citations where rowid >= $first and rowid < $end),
placed as (
    select
        *, split_part(locator, '/', 1) as part, split_part(locator, '/', -1) as field,
        try_cast(split_part(locator, '/', 2) as bigint) as first, try_cast(split_part(locator, '/', 4) as bigint) as second
    from slice
),
needed as (select distinct cited from slice),
called as (
    select rollout_id, call, finish_reason, status, output from model_calls
    where run_id = $run_id and (rollout_id, call) in (select (cited, first) from placed where part = 'calls')
),
used as (
    select rollout_id, turn, position, status, arguments, output from tool_calls
    where run_id = $run_id and rollout_id in (select cited from placed where part = 'turns')
),
read as (
    select
        p.*,
        case part
            when 'rollout' then case field
                when 'failure' then r.failure when 'stop_reason' then r.stop_reason when 'tool_calls' then r.tool_calls::varchar
            end
            when 'verdict' then case field
                when 'failure' then v.failure when 'failure_message' then v.failure_message
                when 'extracted_answer' then v.extracted_answer when 'passed' then v.passed::varchar when 'reason' then v.reason
            end
            when 'calls' then case field
                when 'finish_reason' then c.finish_reason when 'status' then c.status when 'output' then c.output
            end
            when 'turns' then case field when 'status' then t.status when 'arguments' then t.arguments when 'output' then t.output end
            when 'response' then e.response
        end as actual,
        r.rollout_id is not null as exists
    from placed p
    left join (select * from rollouts where run_id = $run_id and rollout_id in (from needed)) r on r.rollout_id = p.cited
    left join (
        select * from verdicts where run_id = $run_id and verdict_set = $verdict_set and rollout_id in (from needed)
    ) v on v.rollout_id = p.cited
    left join called c on p.part = 'calls' and c.rollout_id = p.cited and c.call = p.first
    left join used t on p.part = 'turns' and t.rollout_id = p.cited and t.turn = p.first and t.position = p.second
    left join (
        select rollout_id, response from evidence
        where run_id = $run_id and rollout_id in (select cited from placed where part = 'response')
    ) e on p.part = 'response' and e.rollout_id = p.cited
)
select
    rollout_id, cause, rank, cited, locator, shown,
    exists and case
        -- Texts are cited by what occurs in them, those that are JSON as it stands there; the beginning of long values.
        when field = 'reason' or (part = 'turns' and field = 'output') then coalesce(contains(actual, shown), false)
        when field in ('output', 'text') then coalesce(contains(actual, (to_json(shown)::varchar)[2:-2]), false)
        when field in ('arguments', 'failure_message') then coalesce(starts_with(actual, shown), false)
        else actual is not distinct from shown
    end as holds
from read
