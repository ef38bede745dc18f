-- The task's row does not fit its verifier.
-- root_cause: data_artifact
-- intervention: data_repair
-- rank: 20
select f.rollout_id, f.rollout_id as cited, 'verdict/failure_message' as locator, left(v.failure_message, 200) as shown
from facts.rollouts f
join verdicts v on v.rollout_id = f.rollout_id and v.verdict_set = $verdict_set
where contains(v.failure_message, 'the task does not fit the verifier')
