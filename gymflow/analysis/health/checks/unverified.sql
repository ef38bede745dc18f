-- The rollout completed and has no reward, because scoring it failed.
-- severity: error
-- applies: status = 'completed' and (reward is not null or verdict_failure is not null)
select
    f.rollout_id, 'verdict/failure' as locator,
    format('{}: {}', f.verdict_failure, left(coalesce(v.failure_message, ''), 160)) as message
from facts.rollouts f
join verdicts v on v.rollout_id = f.rollout_id and v.is_current
where f.verdict_failure is not null
