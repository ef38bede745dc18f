"""The plan of a run: which rollouts it consists of. Fixed when planned; it may grow, rows are never re-cut."""

from typing import Any

from gymflow.contracts.trajectory import Record


class PlannedTask(Record):
    """One row of `tasks.parquet`: a task as the run uses it, with its rendered input."""

    task_index: int
    task_key: str
    row_digest: str
    environment: str
    split: str
    task_id: str
    tags: list[str]
    cluster: str | None
    task: dict[str, Any]


class PlannedRollout(Record):
    """One row of `plan.parquet`."""

    plan_index: int
    task_index: int
    task_key: str
    task_id: str
    environment: str
    split: str
    agent: str
    repeat: int
    seed: int | None
    chunk: int
    rollout_key: str
