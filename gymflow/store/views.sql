-- The views that scripts may rely on (DESIGN: command line). They stand on what views.py makes: the tables of the store without
-- superseded rows (rollouts, attempts, evidence, model_calls, plan, tasks), _tokens, _runs, verdict_sets and verdicts.

-- What every planned rollout contributes to a score, per verdict set (DESIGN: outcomes and denominators). A run that was never
-- scored has its rows once, with no verdict set.
create view outcomes as
select
    p.run_id, p.run_id || '-' || p.plan_index as rollout_id, p.rollout_key, p.task_key, p.task_id, p.repeat,
    p.environment, p.split, p.agent, p.plan_index, p.task_index, p.chunk, p.seed,
    r.status, r.stop_reason, r.failure, r.sampled_in,
    s.verdict_set, coalesce(s.is_current, true) as is_current,
    case
        when r.status is null then 'missing'
        when r.status = 'failed' then 'failed'
        when v.reward is not null then 'scored'
        else 'unverified'
    end as outcome,
    v.reward, v.passed, v.masked, v.failure as verdict_failure
from plan p
left join verdict_sets s on s.run_id = p.run_id
left join rollouts r on r.run_id = p.run_id and r.plan_index = p.plan_index
left join verdicts v on v.run_id = r.run_id and v.rollout_id = r.rollout_id and v.verdict_set = s.verdict_set;

create view runs as
select
    d.*, coalesce(p.planned, 0) as planned, coalesce(r.completed, 0) as completed, coalesce(r.failed, 0) as failed,
    coalesce(p.planned, 0) - coalesce(r.completed, 0) - coalesce(r.failed, 0) as missing
from _runs d
left join (select run_id, count(*) as planned from plan group by run_id) p using (run_id)
left join (
    select run_id, count(*) filter (status = 'completed') as completed, count(*) filter (status = 'failed') as failed
    from rollouts group by run_id
) r using (run_id)
order by created_at desc, run_id desc;

-- Projections of the trajectory, rebuilt on every query.
create view _turns as
select
    run_id, rollout_id, plan_index,
    unnest(
        from_json(
            trajectory -> '$.turns',
            '[{"index": "BIGINT", "invocation": "BIGINT", "model_call": "BIGINT",
               "tool_calls": [{"call_id": "VARCHAR", "name": "VARCHAR", "arguments": "VARCHAR", "output": "VARCHAR",
                               "status": "VARCHAR", "started_at": "DOUBLE", "ended_at": "DOUBLE", "timing": "VARCHAR"}],
               "step": {"messages": "JSON", "reward": "DOUBLE", "done": "BOOLEAN", "truncated": "BOOLEAN"}}]'
        )
    ) as t
from evidence;

create view turns as
select
    run_id, rollout_id, t.index as turn, t.invocation, t.model_call as call, len(t.tool_calls) as tool_calls,
    t.step.reward as step_reward, t.step.done, t.step.truncated, t.step.messages as step_messages
from _turns;

create view tool_calls as
select
    run_id, rollout_id, turn, position, c.call_id, c.name, c.arguments, c.output, c.status, c.started_at, c.ended_at,
    c.ended_at - c.started_at as duration_s, c.timing
from (
    select
        run_id, rollout_id, t.index as turn,
        unnest(range(len(t.tool_calls))) as position, unnest(t.tool_calls) as c
    from _turns
);
