-- What the judge model was asked, one row a call, in the verdict set that the call was made for. A reused answer was given before,
-- to the same question: its tokens, cost and times are those of then.
create view judge_calls as
select
    run_id, rollout_id, verdict_set, c.call.index as call, c.key as question_key, c.reused,
    c.call.instructions, c.call.new_input, c.call.parameters, c.call.output, c.call.model, c.call.reported_model,
    c.call.status, c.call.error_kind, c.call.error_message, c.call.finish_reason, c.call.attempts,
    c.call.started_at, c.call.duration_s, c.call.usage.prompt_tokens as prompt_tokens,
    c.call.usage.completion_tokens as completion_tokens, c.call.usage.reasoning_tokens as reasoning_tokens, c.call.cost_usd
from (
    select
        run_id, rollout_id, verdict_set,
        unnest(
            from_json(
                calls,
                '[{"key": "VARCHAR", "reused": "BOOLEAN",
                   "call": {"index": "BIGINT", "instructions": "VARCHAR", "new_input": "JSON", "parameters": "JSON",
                            "output": "JSON", "model": "VARCHAR", "reported_model": "VARCHAR", "status": "VARCHAR",
                            "error_kind": "VARCHAR", "error_message": "VARCHAR", "finish_reason": "VARCHAR",
                            "attempts": "BIGINT", "started_at": "DOUBLE", "duration_s": "DOUBLE", "cost_usd": "DOUBLE",
                            "usage": {"prompt_tokens": "BIGINT", "completion_tokens": "BIGINT",
                                      "reasoning_tokens": "BIGINT"}}}]'
            )
        ) as c
    from verdicts
    where calls is not null and judged_in = verdict_set
);
