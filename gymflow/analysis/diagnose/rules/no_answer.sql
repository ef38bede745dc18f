-- The rollout ended without anything that could be an answer.
-- root_cause: behaviour
-- intervention: prompt_change
-- rank: 68
select rollout_id, rollout_id as cited, 'verdict/extracted_answer' as locator, null as shown
from facts.rollouts
where outcome = 'scored' and extracted_answer is null
  and (extracts or (said = 0 and tool_calls = 0 and not calls_hidden))
