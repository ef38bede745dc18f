"""A rollout: one attempt of one task by one agent, as the store keeps it."""

from typing import Any

from pydantic import Field

from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.trajectory import ModelCall, Record, Trajectory, Usage


class Attempt(Record):
    """One try of a rollout that infrastructure failed. Every try is kept."""

    failure: FailureKind
    message: str
    started_at: float
    duration_s: float


class Rollout(Record):
    """The narrow row (under 1 kB): identity, how it ended, and the totals."""

    run_id: str
    rollout_id: str
    rollout_key: str
    plan_index: int
    task_key: str
    task_id: str
    repeat: int
    environment: str
    split: str
    agent: str
    model: str
    seed: int | None
    status: Status
    stop_reason: StopReason | None = None
    failure: FailureKind | None = None
    failure_message: str | None = None
    started_at: float
    duration_s: float
    turns: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    usage: Usage = Field(default_factory=Usage)
    cost_usd: float | None = None
    sampled_in: str = Field(description="Run id in which it was sampled; another run's where it was reused.")
    evidence_digest: str = Field(description="SHA-256 of the evidence as JSON; part of every verdict's key.")
    weight_version: str | None = None


class EvidenceRecord(Record):
    """What a verifier may read of a rollout."""

    trajectory: Trajectory
    response: dict[str, Any] = Field(description='{"output": [...]}: the output items of the last model call.')
    snapshot: dict[str, Any] | None = None
    artifacts: dict[str, str] = Field(default_factory=dict, description="Name -> content digest in the artifact store.")


class RolloutRecord(Record):
    """All that one rollout leaves behind; journalled as one line, so that it is durable as a whole or not at all."""

    rollout: Rollout
    evidence: EvidenceRecord
    model_calls: list[ModelCall]
    attempts: list[Attempt] = Field(default_factory=list)
