"""Reuse over a whole store: rollouts that were asked for before, and their record in another run."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from gymflow.contracts.plan import PlannedRollout
from gymflow.contracts.rollout import RolloutRecord
from gymflow.store.layout import rollout_id
from gymflow.store.views import connect


def find_completed(root: str | Path, rollout_keys: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Key -> (run id, rollout id) for the keys that some run of the store has completed: the run that sampled it rather than
    one that reused it, the earliest of several."""
    keys = sorted(set(rollout_keys))
    if not keys:
        return {}
    with connect(root) as connection:
        connection.register("_wanted", pa.table({"rollout_key": pa.array(keys, pa.string())}))
        rows = connection.execute(
            """
            select rollout_key, run_id, rollout_id
            from rollouts join _wanted using (rollout_key)
            where status = 'completed'
            qualify row_number() over (
                partition by rollout_key order by sampled_in <> run_id, started_at, rollout_id
            ) = 1
            """
        ).fetchall()
    return {key: (run_id, rollout) for key, run_id, rollout in rows}


def reused(record: RolloutRecord, run_id: str, planned: PlannedRollout) -> RolloutRecord:
    """The record as another run stores it for a row of its own plan. Where it was sampled stays what it was."""
    rollout = record.rollout.model_copy(
        update={
            "run_id": run_id,
            "rollout_id": rollout_id(run_id, planned.plan_index),
            "rollout_key": planned.rollout_key,
            "plan_index": planned.plan_index,
            "task_key": planned.task_key,
            "task_id": planned.task_id,
            "repeat": planned.repeat,
            "environment": planned.environment,
            "split": planned.split,
            "agent": planned.agent,
        }
    )
    return record.model_copy(update={"rollout": rollout})
