-- How the answers of tasks divide, and how many tasks divide so. Over _planned (planned.sql), scored rollouts only.
-- `votes`: for each different answer how many rollouts gave it and how many of these passed. An unanswered rollout is wrong, unless
-- the verifier passed it: then it is a vote of its own.
WITH answers AS (
    SELECT environment, agent, task_index, extracted_answer, count(*) AS n, count(*) FILTER (WHERE passed) AS passed
    FROM _planned
    WHERE outcome = 'scored'
    GROUP BY environment, agent, task_index, extracted_answer, CASE WHEN extracted_answer IS NULL THEN passed END
),
votes AS (
    SELECT environment, agent, task_index, list_sort(list({n: n, passed: passed})) AS votes,
           coalesce(sum(n) FILTER (WHERE extracted_answer IS NULL), 0) AS unanswered
    FROM answers
    GROUP BY ALL
)
SELECT votes.environment, votes.agent, votes, list_sum(list_transform(votes, lambda vote: vote.n))::BIGINT AS scored, t.cluster,
       count(*) AS tasks, sum(unanswered)::BIGINT AS unanswered
FROM votes
JOIN _per_task t USING (environment, agent, task_index)
GROUP BY votes.environment, votes.agent, votes, t.cluster
