-- Tasks whose gold answer or verifier a person should look at, with what shows it.
create table facts.suspects as
select
    f.rollout_id, f.task_index, f.task_id, f.environment, f.agent, 'unanimous_wrong_answer' as reason,
    format('all {} repeats answer {}, which is scored wrong', count(*) over tasks, left(u.answer, 80)) as detail,
    'verdict/extracted_answer' as locator, f.extracted_answer as shown
from facts.unanimous u
join facts.rollouts f using (task_index, agent)
where u.suspect and f.outcome = 'scored'
window tasks as (partition by f.task_index, f.agent)
union all
select
    f.rollout_id, f.task_index, f.task_id, f.environment, f.agent, 'verdicts_differ_between_sets',
    format('{} of its verdicts changed from set {}', count(*) over tasks, x.old_set), 'verdict/passed', x.new_passed::varchar
from (select * from flips where run_id = $run_id and new_set = $verdict_set) x
join facts.rollouts f on f.rollout_id = x.rollout_id
window tasks as (partition by f.task_index, f.agent, x.old_set);

insert into facts.citations
select distinct rollout_id, 'suspect/' || reason, 0, rollout_id, locator, shown from facts.suspects;
