-- Infrastructure failed the rollout: it has no reward.
-- severity: error
select
    rollout_id, 'rollout/failure' as locator,
    format('{} after {} attempts: {}', failure, attempts, left(coalesce(failure_message, ''), 160)) as message
from facts.rollouts where status = 'failed'
