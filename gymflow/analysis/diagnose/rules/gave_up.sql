-- The agent said that it cannot, instead of an answer.
-- root_cause: behaviour
-- intervention: prompt_change
-- rank: 64
select f.rollout_id, f.rollout_id as cited, 'response/text' as locator, regexp_extract(e.response, $giving_up, 0, 'i') as shown
from facts.rollouts f
join evidence e using (rollout_id)
where f.outcome = 'scored' and not f.passed and f.extracted_answer is null and regexp_matches(e.response, $giving_up, 'i')
