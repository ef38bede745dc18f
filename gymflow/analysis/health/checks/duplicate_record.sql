-- Two records of the same rollout count, or of two rollouts one evidence contradicts the other.
-- severity: error
-- scope: run
select
    rollout_id, any_value(task_key) as task_key, 'rollout' as locator,
    format('{} records of this rollout count', count(*))
    || if(count(distinct evidence_digest) > 1, ', and their evidence differs', '') as message
from rollouts
group by rollout_id
having count(*) > 1
