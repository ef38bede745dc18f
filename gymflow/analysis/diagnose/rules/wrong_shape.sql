-- The right answer in the wrong shape: it passes when scored leniently.
-- root_cause: format
-- intervention: prompt_change
-- rank: 40
select rollout_id, rollout_id as cited, 'verdict/passed' as locator, 'false' as shown from facts.lenient
