-- The views that scripts may rely on. They stand on what views.py makes: the tables of the store without
-- superseded rows (rollouts, attempts, evidence, model_calls, plan, tasks), _tokens, _runs, verdict_sets and verdicts.

-- By the status of its stored rollout, null where there is none, and the reward of its verdict.
create macro outcome_of(status, reward) as
    case
        when status is null then 'missing'
        when status = 'failed' then 'failed'
        when reward is not null then 'scored'
        else 'unverified'
    end::enum ('scored', 'unverified', 'failed', 'missing');

-- What every planned rollout contributes to a score, per verdict set. A run that was never
-- scored has its rows once, with no verdict set.
create view outcomes as
select
    p.run_id, p.run_id || '-' || p.plan_index as rollout_id, p.rollout_key, p.task_key, p.task_id, p.repeat,
    p.environment, p.split, p.agent, p.plan_index, p.task_index, p.chunk, p.seed,
    r.status, r.stop_reason, r.failure, r.sampled_in,
    s.verdict_set, coalesce(s.is_current, true) as is_current,
    outcome_of(r.status, v.reward)::varchar as outcome,
    v.reward, v.passed, v.extracted_answer, v.reason, v.components, v.masked, v.failure as verdict_failure
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

-- Rewards may be as large as a number can be, and their sum larger: a division by a power of two before, and the multiplication by it
-- after, change no digit. What is too large all the same, or no number, is null.
create macro mean_of(x) as avg(x * pow(2, -40)) * pow(2, 40);
create macro finite(x) as case when isfinite(x) then x end;

-- Estimators, as in gymflow/metrics/estimators.py and intervals.py. Null where they are undefined: k > n, or no trial.
create macro pass_at_k(n, c, k) as
    case
        when k < 1 or c < 0 or c > n then error('pass_at_k(n, c, k) needs 0 <= c <= n and k >= 1')
        when k > n then null
        when n - c < k then 1.0::double
        when c = 0 then 0.0::double
        else 1.0::double - list_product(list_transform(range(n - c + 1, n + 1), lambda i: 1.0::double - k / i))
    end;

create macro pass_hat_k(n, c, k) as
    case
        when k < 1 or c < 0 or c > n then error('pass_hat_k(n, c, k) needs 0 <= c <= n and k >= 1')
        when k > n then null
        when c < k then 0.0::double
        else list_product(list_transform(range(k), lambda i: (c - i)::double / (n - i)))
    end;

-- Wilson's score interval of c successes in n trials; z = 1.96 for 95 %. Null unless 0 <= c <= n and n > 0.
create macro wilson_low(c, n, z := 1.959963984540054) as
    case
        when n > 0 and c = 0 then 0.0::double
        when n > 0 and c between 0 and n then
            (c / n + z * z / (2 * n) - z * sqrt(c / n * (1 - c / n) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    end;

create macro wilson_high(c, n, z := 1.959963984540054) as
    case
        when n > 0 and c = n then 1.0::double
        when n > 0 and c between 0 and n then
            (c / n + z * z / (2 * n) + z * sqrt(c / n * (1 - c / n) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    end;

-- A task as one agent played it, in one verdict set: what scores are means of. `passed` counts rollouts.
create view task_scores as
select
    run_id, verdict_set, is_current, environment, agent, task_key, any_value(task_id) as task_id,
    mean_of(reward) as reward, count(*) filter (outcome = 'scored') as scored, count(*) filter (passed) as passed,
    count(*) as planned, finite(var_samp(reward)) as variance
from outcomes
group by run_id, verdict_set, is_current, environment, agent, task_index, task_key;

-- Rollouts that pass in one verdict set of their run and not in a later one, or the other way round; null: no reward.
create view flips as
select
    a.run_id, a.rollout_id, a.environment, a.agent, a.task_key, a.task_id, a.repeat,
    a.verdict_set as old_set, b.verdict_set as new_set, a.passed as old_passed, b.passed as new_passed,
    a.reward as old_reward, b.reward as new_reward, a.reason as old_reason, b.reason as new_reason
from outcomes a
join outcomes b on b.run_id = a.run_id and b.plan_index = a.plan_index
join verdict_sets s on s.run_id = a.run_id and s.verdict_set = a.verdict_set
join verdict_sets t on t.run_id = b.run_id and t.verdict_set = b.verdict_set
where s.position < t.position and a.passed is distinct from b.passed;
