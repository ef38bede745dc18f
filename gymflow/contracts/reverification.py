"""What scoring a run's rollouts again came to, against how they were scored before."""

from typing import Any

from pydantic import Field

from gymflow.contracts.base import Contract
from gymflow.contracts.estimate import Estimate


class VerifierChange(Contract):
    """What judges otherwise in one environment. Equal fields are left as they are; null: unknown."""

    environment: str
    verifier: tuple[str, str] = Field(description="Name before and now.")
    version: tuple[str, str]
    code_digest: tuple[str, str]
    code_changed: bool
    code_diff: str | None = Field(
        description="Unified diff; null where the code did not change, is not known, or is that of another verifier."
    )
    parameters: dict[str, tuple[Any, Any]] = Field(description="Those that differ: before and now.")
    judge: tuple[dict[str, Any] | None, dict[str, Any] | None]

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        names = (self.verifier, self.version, self.judge)
        return self.code_changed or bool(self.parameters) or any(before != now for before, now in names)


class Flip(Contract):
    """A rollout with another reward than before."""

    environment: str
    agent: str
    task_id: str
    repeat: int
    rollout_id: str
    old_reward: float
    new_reward: float
    old_passed: bool
    new_passed: bool
    old_reason: str | None
    new_reason: str | None


class ReverifyLine(Contract):
    """One environment and agent: both scores over the rollouts that have a reward in both sets."""

    environment: str
    agent: str
    rollouts: int = Field(description="With a reward in both sets.")
    old_score: float | None
    new_score: float | None
    difference: Estimate = Field(description="New less old, paired by task and clustered.")
    p: float | None
    gained: int = Field(description="Rollouts that pass now and did not.")
    lost: int = Field(description="Rollouts that passed and do not now.")
    recovered: int = Field(description="Rollouts with a reward now that had none.")
    without: int = Field(description="Completed rollouts without a reward now.")
    newly_without: int = Field(description="Of them, those that had one.")
    old_headline: float | None = Field(description="Score over all rollouts with a reward in the old set.")
    new_headline: float | None


class Refused(Contract):
    """Rollouts that were not judged, and the missing piece, in the verifier's own words."""

    environment: str
    rollouts: int
    failure: str | None
    reason: str
    kept: bool = Field(description="Their earlier verdicts stand in the new set.")


class Agreement(Contract):
    """The new set's passes against people's, on the rollouts that have both."""

    labels: int = Field(description="Labels in the file.")
    matched: int
    observed: float | None
    kappa: float | None
    kappa_standard_error: float | None
    reason: str | None
    true_pass: int
    false_pass: int
    false_fail: int
    true_fail: int
    sensitivity: float | None
    specificity: float | None
    corrected_pass_rate: float | None = Field(description="Pass rate that people would give (Rogan and Gladen 1978).")


class Reverification(Contract):
    """One rescoring of one run."""

    run_id: str
    name: str
    store: str
    old_set: str | None
    new_set: str
    unchanged: bool = Field(description="The verifier is the one that the set was judged by: nothing was judged anew.")
    scored: int
    reused: int
    changes: list[VerifierChange]
    lines: list[ReverifyLine]
    flips: list[Flip]
    refused: list[Refused]
    agreement: Agreement | None = None
