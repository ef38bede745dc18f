-- The agent said that it cannot, instead of an answer.
-- root_cause: behaviour
-- intervention: prompt_change
-- rank: 64
select f.rollout_id, f.rollout_id as cited, 'response/text' as locator, g.words as shown
from facts.giving_up g
join facts.rollouts f using (rollout_id)
where f.outcome = 'scored'
