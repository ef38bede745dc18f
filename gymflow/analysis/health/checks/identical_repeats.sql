-- Repeats of a task that were sampled at a temperature and say the same, word for word: a cache in the way.
-- severity: warning
-- applies: (calls_hidden or ok_calls > 0) and coalesce(temperature, 1) > 0
-- observed: not calls_hidden
with repeated as (
    select task_index, agent, content, count(*) as times
    from facts.rollouts
    where status = 'completed' and coalesce(temperature, 1) > 0 and said >= $identical_chars
    group by all
    having count(*) > 1
),
shared as (
    select response_id, count(distinct rollout_id) as times
    from facts.calls where response_id <> '' group by all having count(distinct rollout_id) > 1
)
select
    f.rollout_id, 'rollout' as locator,
    format('the same {} characters in {} repeats of the task', f.said, r.times) as message
from facts.rollouts f
join repeated r using (task_index, agent, content)
where f.status = 'completed'
union all
select c.rollout_id, 'calls/' || c.call, format('response {} was given to {} rollouts', c.response_id, s.times)
from facts.calls c
join shared s using (response_id)
