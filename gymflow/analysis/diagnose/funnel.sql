-- How far the rollouts came; each stage counts only those that came through all before it. What the verifier extracted is an answer;
-- where it extracts nothing, or judged nothing, words are one that do not give up.
with reached as (
    select
        environment, agent,
        status is not null as started,
        status is not null and (ok_calls > 0 or turns > 0 or calls_hidden) as acted,
        acted and status = 'completed' as completed,
        completed and case
            when coalesce(passed, false) or extracted_answer is not null then true
            when outcome = 'scored' and extracts then false
            else (said > 0 or tool_calls > 0 or calls_hidden) and g.words is null and stop_reason is distinct from 'refusal'
        end as answered,
        answered and outcome = 'scored' as verified,
        verified and passed as success
    from facts.rollouts
    left join facts.giving_up g using (rollout_id)
)
select
    environment, agent, count(*) as planned, count(*) filter (started) as started, count(*) filter (acted) as acted,
    count(*) filter (completed) as completed, count(*) filter (answered) as answered, count(*) filter (verified) as verified,
    count(*) filter (success) as passed
from reached
group by environment, agent
order by environment, agent
