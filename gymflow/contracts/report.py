"""What a run is said to have come to: the scorecard, line by line. Undefined numbers are null."""

from datetime import datetime

from pydantic import Field

from gymflow.contracts.base import Contract
from gymflow.contracts.estimate import Interval
from gymflow.contracts.outcome import Outcome, StopReason


class Failures(Contract):
    """Rollouts without a reward for the same kind of reason."""

    kind: str
    rollouts: int
    words: str | None = Field(description="The message that most of them carry.")


class ScoreLine(Contract):
    """One environment and agent of a run."""

    environment: str
    agent: str
    tasks: int
    unscored_tasks: int
    score: float | None = Field(description="Mean over tasks of the per-task mean reward over scored rollouts.")
    standard_error: float | None = Field(
        description="Of the score, clustered by task, and by `cluster` where tasks have one."
    )
    interval: Interval | None = Field(
        description="95 % of the score: Wilson's within the reward range, so that it has a width at 0/n and n/n, too."
    )
    pass_at: dict[int, float] = Field(description="k -> pass@k over the tasks with at least k scored rollouts.")
    always: int = Field(description="Tasks of which all scored repeats passed; sometimes and never likewise.")
    sometimes: int
    never: int
    rollouts: int
    scored: int
    unverified: int
    failed: int
    missing: int
    failures: list[Failures] = Field(description="By kind, the most frequent first, verifier failures included.")
    reused: int
    prompt_tokens: int | None = Field(
        description="Of the rollouts whose endpoint reported them; likewise the completion's."
    )
    completion_tokens: int | None
    uncounted: int = Field(description="Completed rollouts that lack a count of their prompt's or completion's tokens.")
    cost_usd: float | None
    median_duration_s: float | None
    elapsed_s: float | None


class Scorecard(Contract):
    """The end of a run, as stored, printed and returned by the flow."""

    run_id: str
    name: str
    store: str
    verdict_set: str | None = Field(description="None: the run ended before anything could be scored.")
    lines: list[ScoreLine]

    @property
    def incomplete(self) -> int:
        """Planned rollouts without a durable, completed sample."""
        return sum(line.missing + line.failed for line in self.lines)


class RunScore(Contract):
    """The headline of one environment and agent, as in its `ScoreLine`."""

    environment: str
    agent: str
    score: float | None
    standard_error: float | None = Field(
        description="Of the score, clustered by task, and by `cluster` where tasks have one."
    )
    groups: int = Field(description="Independent groups of scored tasks that the standard error is over.")


class RunSummary(Contract):
    """One run in a list of runs; coverage and scores are of its current verdict set."""

    run_id: str
    name: str
    created_at: datetime
    environments: list[str]
    models: list[str] = Field(description="Those evaluated, as `provider:name@revision`.")
    fingerprint: str = Field(description="Digest of the sampling part: equal where runs sampled the same way.")
    verdict_set: str | None
    verdict_sets: int
    being_written: bool
    planned: int
    scored: int
    unverified: int
    failed: int
    missing: int
    scores: list[RunScore]

    @property
    def score(self) -> RunScore | None:
        """The run's one score; None where it has several."""
        return self.scores[0] if len(self.scores) == 1 else None


class TaskLine(Contract):
    """One task of a run, played by one agent, in one verdict set."""

    environment: str
    agent: str
    task_id: str
    task_key: str
    rollouts: int
    scored: int
    passed: int
    reward: float | None = Field(description="Mean over the scored repeats.")
    unverified: int
    failed: int
    missing: int


class RepeatLine(Contract):
    """One planned rollout of a task, in one verdict set; what it has not come to is null."""

    rollout_id: str
    plan_index: int
    agent: str
    repeat: int
    outcome: Outcome
    reward: float | None
    passed: bool | None
    stop_reason: StopReason | None
    failure: str | None = Field(description="Failure kind of the rollout, or of its verdict.")
    failure_message: str | None
    extracted_answer: str | None
    reason: str | None
    turns: int | None
    tool_calls: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    duration_s: float | None
