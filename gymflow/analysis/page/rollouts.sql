-- Every planned rollout in one verdict set; the tasks of an agent the worst first. Parameters: $run_id, $verdict_set.
select
    o.rollout_id, o.plan_index, o.task_index, o.task_id, o.environment, o.agent, o.repeat, o.outcome, o.reward, o.passed,
    o.stop_reason, coalesce(o.failure, o.verdict_failure) as failure,
    left(coalesce(r.failure_message, v.failure_message), 300) as failure_message,
    left(o.extracted_answer, 300) as extracted_answer, left(o.reason, 300) as reason,
    r.turns, r.tool_calls, r.completion_tokens, r.duration_s
from outcomes o
left join rollouts r on r.run_id = o.run_id and r.rollout_id = o.rollout_id
left join verdicts v on v.run_id = o.run_id and v.rollout_id = o.rollout_id and v.verdict_set = o.verdict_set
where o.run_id = $run_id and o.verdict_set is not distinct from $verdict_set
order by
    o.environment, o.agent, avg(o.reward) over (partition by o.environment, o.agent, o.task_index) nulls first, o.task_index,
    o.repeat, o.plan_index
