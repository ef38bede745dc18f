-- Mean of every reward component, per environment, agent and task. Over _planned (planned.sql).
WITH named AS (
    SELECT environment, agent, task_index,
           unnest(map_entries(from_json(components, '"MAP(VARCHAR, DOUBLE)"'))) AS component
    FROM _planned
    WHERE outcome = 'scored' AND components IS NOT NULL
)
SELECT environment, agent, component.key AS name, task_index, mean_of(component.value) AS mean
FROM named
GROUP BY ALL
ORDER BY environment, agent, name, task_index
