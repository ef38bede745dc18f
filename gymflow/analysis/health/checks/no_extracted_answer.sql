-- The verifier found no answer, where it is one that looks for answers.
-- severity: info
-- applies: outcome = 'scored' and extracts
select
    rollout_id, 'verdict/extracted_answer' as locator,
    'no answer extracted' || coalesce(': ' || left(reason, 120), '') as message
from facts.rollouts where outcome = 'scored' and extracts and extracted_answer is null and not coalesce(passed, false)
