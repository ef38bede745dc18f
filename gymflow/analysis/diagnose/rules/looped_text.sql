-- The model wrote the same over and over.
-- root_cause: behaviour
-- intervention: model_training
-- rank: 45
select l.rollout_id, l.rollout_id as cited, 'calls/' || l.call || '/output' as locator, l.unit as shown
from facts.loops l
join facts.rollouts f using (rollout_id)
where f.status = 'completed' and not coalesce(f.passed, false)
