-- The agent gives an answer, and no repeat of the task passes.
-- root_cause: knowledge_gap
-- intervention: model_training
-- rank: 90
with wrong as (
    select f.rollout_id, f.extracted_answer
    from facts.rollouts f
    anti join (select task_index, agent from facts.rollouts where passed) s using (task_index, agent)
    where f.outcome = 'scored'
      and case when f.extracts then f.extracted_answer is not null
               else f.said > 0 or f.tool_calls > 0 or f.calls_hidden end
)
select rollout_id, rollout_id as cited, 'verdict/passed' as locator, 'false' as shown from wrong
union all
select rollout_id, rollout_id, 'verdict/extracted_answer', extracted_answer from wrong where extracted_answer is not null
