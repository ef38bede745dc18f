-- How far the rollouts came; each stage counts only those that came through all before it.
with reached as (
    select
        environment, agent,
        status is not null as started,
        status is not null and (ok_calls > 0 or turns > 0 or calls_hidden) as acted,
        acted and status = 'completed' as completed,
        completed and not (outcome = 'scored' and extracts and extracted_answer is null and not coalesce(passed, false))
            and (said > 0 or tool_calls > 0 or calls_hidden) as answered,
        answered and outcome = 'scored' as verified,
        verified and passed as success
    from facts.rollouts
)
select
    environment, agent, count(*) as planned, count(*) filter (started) as started, count(*) filter (acted) as acted,
    count(*) filter (completed) as completed, count(*) filter (answered) as answered, count(*) filter (verified) as verified,
    count(*) filter (success) as passed
from reached
group by environment, agent
order by environment, agent
