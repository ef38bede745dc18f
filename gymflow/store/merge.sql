-- How the rollouts and tasks of several runs become those of one. Over the views, of the source runs alone.
-- The result depends on the set of runs: nothing below knows an order of them. Parameter: $chunk_size.

-- Where equal indices mean equal things in all sources, as in shards of one plan, they stay; otherwise things are numbered anew.
CREATE TEMP TABLE _task AS
WITH named AS (
    SELECT run_id, task_index, environment, row_digest,
           row_number() OVER (PARTITION BY run_id, environment, row_digest ORDER BY task_index) AS nth
    FROM tasks
),
whole AS (
    SELECT environment, row_digest, nth, min(task_index) AS first, count(DISTINCT task_index) AS places FROM named GROUP BY ALL
),
agree AS (
    SELECT max(places) = 1 AND count(*) = count(DISTINCT first) AS same FROM whole
),
renumbered AS (
    SELECT environment, row_digest, nth,
           CASE WHEN same THEN first ELSE row_number() OVER (ORDER BY environment, first, row_digest, nth) - 1 END AS new_index
    FROM whole, agree
)
SELECT run_id, task_index, new_index FROM named JOIN renumbered USING (environment, row_digest, nth);

CREATE TEMP TABLE _row AS
WITH whole AS (
    SELECT p.environment, p.agent, p.rollout_key, min(p.plan_index) AS first, count(DISTINCT p.plan_index) AS places,
           min(p.repeat) AS repeat, min(t.new_index) AS task
    FROM plan p JOIN _task t USING (run_id, task_index)
    GROUP BY ALL
),
agree AS (
    SELECT max(places) = 1 AND count(*) = count(DISTINCT first) AS same FROM whole
),
renumbered AS (
    SELECT environment, agent, rollout_key,
           CASE WHEN same THEN first ELSE row_number() OVER (ORDER BY repeat, task, agent, rollout_key) - 1 END AS new_index
    FROM whole, agree
)
SELECT *, (row_number() OVER (ORDER BY new_index) - 1) // $chunk_size AS chunk FROM renumbered;

-- Every stored sample of every planned rollout; `place` 1 is the one that counts: completed before failed, the first that began.
CREATE TEMP TABLE _sample AS
SELECT w.new_index, r.run_id, r.plan_index, r.seq, r.status, r.evidence_digest,
       row_number() OVER (
           PARTITION BY w.new_index ORDER BY r.status, r.started_at, r.evidence_digest, r.run_id
       ) AS place
FROM rollouts r
JOIN plan p ON p.run_id = r.run_id AND p.plan_index = r.plan_index
JOIN _row w ON w.environment = p.environment AND w.agent = p.agent AND w.rollout_key = p.rollout_key;
