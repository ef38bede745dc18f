-- A reward outside the range that the environment declares.
-- severity: error
-- applies: outcome = 'scored'
-- observed: low is not null
select rollout_id, 'verdict/reward' as locator, format('reward {} outside of {} to {}', reward, low, high) as message
from facts.rollouts where reward < low or reward > high
