"""What a verifier says of one rollout, and who said it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gymflow.contracts.outcome import VerdictFailure
from gymflow.contracts.trajectory import ModelCall


class Anchor(BaseModel):
    """Where in the evidence the verdict rests: a locator such as `turns/3/tool_calls/0`, and the text found there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    locator: str
    text: str | None = None


class Verdict(BaseModel):
    """A verifier's answer. A reward that is not finite is a verifier error, never stored as a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reward: float
    components: dict[str, float] = Field(default_factory=dict)
    extracted_answer: str | None = None
    reason: str | None = None
    anchors: tuple[Anchor, ...] = ()
    masked: bool = Field(False, description="Kept for evaluation, left out of training.")
    details: dict[str, Any] = Field(default_factory=dict, description="The verifier's own further findings.")


class Judged(BaseModel):
    """What judged: equal values mean that the same evidence would get the same verdict."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verifier: str
    version: str
    code_digest: str
    parameter_digest: str
    judge: dict[str, Any] | None = Field(None, description="The judge model's identity, and how it is sampled.")


class JudgeCall(BaseModel):
    """A call to the judge model that a verdict rests on. `key` identifies the question; a reused answer was given before, to the
    same question, and cost nothing now."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    reused: bool
    call: ModelCall


class VerdictRecord(BaseModel):
    """One row of the `verdicts` table: a verdict, or why there is none, in one verdict set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    rollout_id: str
    verdict_set: str
    verdict_key: str
    verdict: Verdict | None
    failure: VerdictFailure | None = None
    failure_message: str | None = None
    passed: bool | None = None
    duration_s: float
    judged: Judged
    calls: tuple[JudgeCall, ...] = Field((), description="What the judge was asked, also where it led to no verdict.")
