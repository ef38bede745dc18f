-- One row per planned rollout of a task, in one verdict set. Parameters: $run_id, $verdict_set, $environment, $task_id.
SELECT o.rollout_id, o.plan_index, o.agent, o.repeat, o.outcome, o.reward, o.passed, o.stop_reason,
       coalesce(o.failure, o.verdict_failure) AS failure,
       coalesce(r.failure_message, v.failure_message) AS failure_message,
       v.extracted_answer, v.reason,
       r.turns, r.tool_calls, r.prompt_tokens, r.completion_tokens, r.duration_s
FROM outcomes o
LEFT JOIN rollouts r ON r.run_id = o.run_id AND r.rollout_id = o.rollout_id
LEFT JOIN verdicts v
    ON v.run_id = o.run_id AND v.rollout_id = o.rollout_id AND v.verdict_set = o.verdict_set
WHERE o.run_id = $run_id AND o.verdict_set IS NOT DISTINCT FROM $verdict_set
  AND o.environment = $environment AND o.task_id = $task_id
ORDER BY o.agent, o.repeat, o.plan_index
