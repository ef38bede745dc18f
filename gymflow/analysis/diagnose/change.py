"""Against an earlier run: which labels explain the difference of the scores.

The mean reward of a task is the top of the range minus its losses, and every loss has the label of its rollout. So over the tasks
that both runs scored, the difference of the means is the difference of the losses, label by label, with nothing left over.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files

import duckdb

from gymflow.contracts.diagnosis import Change, Flip, LabelShift

FLIPS_SHOWN = 50


@dataclass(slots=True)
class TaskLoss:
    """A task's mean reward, and what each label took from it."""

    task_id: str
    mean: float
    losses: dict[str, float] = field(default_factory=dict)


Losses = dict[tuple[str, str], dict[str, TaskLoss]]
"""(environment, agent) -> task key -> loss."""


def losses(connection: duckdb.DuckDBPyConnection) -> Losses:
    """Of a run whose labels are there."""
    found: Losses = defaultdict(dict)
    query = files(__package__).joinpath("losses.sql").read_text()
    for environment, agent, task_key, task_id, label, loss, mean in connection.execute(query).fetchall():
        task = found[environment, agent].setdefault(task_key, TaskLoss(task_id, mean))
        task.losses[label] = task.losses.get(label, 0.0) + (loss or 0.0)
    return found


def changes(before: Losses, after: Losses, against: str) -> Iterator[Change]:
    """One for each environment and agent of both runs. Agents whose names differ are compared if each run has just one."""
    for key, tasks in after.items():
        earlier = before.get(key) or _only(before, after, key[0])
        shared = sorted(tasks.keys() & (earlier or {}).keys())
        if earlier is None or not shared:
            continue
        pairs = [(earlier[task], tasks[task]) for task in shared]
        shifts: dict[str, float] = defaultdict(float)
        for old, new in pairs:
            for label, shift in _shifts(old, new).items():
                shifts[label] += shift / len(pairs)
        moved = sorted((pair for pair in pairs if abs(pair[1].mean - pair[0].mean) > 1e-9), key=_by_size)
        yield Change(
            against=against,
            environment=key[0],
            agent=key[1],
            tasks=len(shared),
            before=sum(old.mean for old, _ in pairs) / len(pairs),
            after=sum(new.mean for _, new in pairs) / len(pairs),
            by_label=[
                LabelShift(label=label, contribution=shift)
                for label, shift in sorted(shifts.items(), key=lambda item: -abs(item[1]))
                if abs(shift) > 1e-12
            ],
            flips=[_flip(old, new) for old, new in moved[:FLIPS_SHOWN]],
        )


def _only(before: Losses, after: Losses, environment: str) -> dict[str, TaskLoss] | None:
    earlier = [tasks for (name, _), tasks in before.items() if name == environment]
    later = [name for name, _ in after if name == environment]
    return earlier[0] if len(earlier) == len(later) == 1 else None


def _shifts(old: TaskLoss, new: TaskLoss) -> dict[str, float]:
    """What each label adds to the task's mean; the losses' difference with the sign of the reward."""
    return {
        label: old.losses.get(label, 0.0) - new.losses.get(label, 0.0)
        for label in old.losses.keys() | new.losses.keys()
    }


def _flip(old: TaskLoss, new: TaskLoss) -> Flip:
    label = max(sorted(_shifts(old, new).items()), key=lambda item: item[1] * (new.mean - old.mean))[0]
    return Flip(task_id=new.task_id, before=old.mean, after=new.mean, label=label)


def _by_size(pair: tuple[TaskLoss, TaskLoss]) -> tuple[float, str]:
    return -abs(pair[1].mean - pair[0].mean), pair[1].task_id
