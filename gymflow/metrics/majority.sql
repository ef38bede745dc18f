-- How the answers of tasks divide, and how many tasks divide so. Over _planned (per_task.sql), scored rollouts only.
-- `votes`: for each different answer (none is one of its own) how many rollouts gave it and which share of them passed.
WITH answers AS (
    SELECT environment, agent, task_index, extracted_answer, count(*) AS n, avg(passed::INT) AS share
    FROM _planned
    WHERE outcome = 'scored'
    GROUP BY ALL
),
votes AS (
    SELECT environment, agent, task_index, sum(n)::BIGINT AS scored, list({n: n, share: share} ORDER BY n, share) AS votes,
           sum(n) FILTER (WHERE extracted_answer IS NULL) AS unanswered
    FROM answers
    GROUP BY ALL
)
SELECT votes.environment, votes.agent, votes.votes, votes.scored, t.cluster, count(*) AS tasks,
       coalesce(sum(unanswered), 0)::BIGINT AS unanswered
FROM votes
JOIN _per_task t USING (environment, agent, task_index)
GROUP BY ALL
