-- Tasks whose gold answer or verifier a person should look at, with what shows it. Parameters: $run_id, $verdict_set.
create table facts.suspects as
select
    f.rollout_id, f.task_index, f.task_id, f.environment, f.agent, 'unanimous_wrong_answer' as reason,
    format('all {} repeats answer {}, which is scored wrong', u.repeats, left(u.answer, 80)) as detail,
    'verdict/extracted_answer' as locator, f.extracted_answer as shown
from facts.unanimous u
join facts.rollouts f using (task_index, agent)
where u.suspect and f.outcome = 'scored'
union all
select
    f.rollout_id, f.task_index, f.task_id, f.environment, f.agent, 'verdicts_differ_between_sets',
    format('{} of its verdicts changed from set {}', count(*) over tasks, s.verdict_set), 'verdict/passed', f.passed::varchar
from facts.rollouts f
cross join (
    select verdict_set from verdict_sets
    where run_id = $run_id
      and position < (select position from verdict_sets where run_id = $run_id and verdict_set = $verdict_set)
) s
left join (select rollout_id, verdict_set, passed from verdicts where run_id = $run_id) v
    on f.status is not null and v.rollout_id = f.rollout_id and v.verdict_set = s.verdict_set
where f.passed is distinct from v.passed
window tasks as (partition by f.task_index, f.agent, s.verdict_set);

insert into facts.citations
select distinct rollout_id, 'suspect/' || reason, 0, rollout_id, locator, shown from facts.suspects;
