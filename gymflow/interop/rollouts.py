"""What every format is read into and written from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gymflow.contracts.outcome import FailureKind, VerdictFailure
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.contracts.trajectory import ModelCall, Trajectory, Usage
from gymflow.contracts.verdict import Verdict, VerdictRecord

OURS = "gymflow"
"""The key beside a format's own fields under which an export keeps ours, so that an import gives back all of them."""


@dataclass(slots=True)
class ForeignRollout:
    """A rollout of another tool, as far as its format goes."""

    task: dict[str, Any]
    """The task row: create parameters, and the fields that a verifier may read."""
    task_id: str | None
    identity: str | None
    """What repeats of one task share; None: equal input means the same task."""
    repeat: int | None
    agent: str
    model: str
    calls: list[ModelCall]
    trajectory: Trajectory
    response: list[dict[str, Any]]
    usage: Usage = field(default_factory=Usage)
    started_at: float = 0.0
    duration_s: float = 0.0
    snapshot: dict[str, Any] | None = None
    failure: FailureKind | None = None
    failure_message: str | None = None
    verdict: Verdict | None = None
    verdict_failure: VerdictFailure | None = None
    verdict_message: str | None = None
    rollout_id: str | None = None
    """The tool's own name of this one sample, where it has one."""
    where: str = field(default="", compare=False)
    """Where it was read."""


@dataclass(slots=True)
class OwnRollout:
    """A rollout of ours, with all that belongs to it. What is the run's own comes with its first rollout: its document, verdict
    sets, whole plan and tasks, and the format that it was exported in. `where` is where it was read."""

    record: RolloutRecord
    planned: PlannedRollout
    task: PlannedTask
    verdicts: list[VerdictRecord]
    artifacts: dict[str, bytes] = field(default_factory=dict)
    run: RunDocument | None = None
    verdict_sets: list[VerdictSet] | None = None
    plan: list[PlannedRollout] = field(default_factory=list)
    tasks: list[PlannedTask] = field(default_factory=list)
    format: str | None = None
    where: str = field(default="", compare=False)

    def verdict_of(self, verdict_sets: Sequence[str]) -> VerdictRecord | None:
        """The verdict of the first of these sets that has one: a set, then those that it took verdicts over from."""
        by_set = {one.verdict_set: one for one in self.verdicts}
        return next((by_set[name] for name in verdict_sets if name in by_set), None)
