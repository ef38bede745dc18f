-- All repeats give the same wrong answer, by an agent whose unanimous answers are otherwise right: likely a wrong gold answer.
-- root_cause: verifier_issue
-- intervention: verifier_repair
-- rank: 35
select f.rollout_id, f.rollout_id as cited, 'verdict/extracted_answer' as locator, f.extracted_answer as shown
from facts.rollouts f
join facts.unanimous u using (task_index, agent)
where u.suspect and f.outcome = 'scored'
