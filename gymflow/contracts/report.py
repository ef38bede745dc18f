"""What a run is said to have come to: the scorecard, line by line. Undefined numbers are null."""

from pydantic import Field

from gymflow.contracts.base import Contract


class ScoreLine(Contract):
    """One environment and agent of a run."""

    environment: str
    agent: str
    tasks: int
    unscored_tasks: int
    score: float | None = Field(description="Mean over tasks of the per-task mean reward over scored rollouts.")
    standard_error: float | None = Field(description="Of the score, clustered by task.")
    pass_at: dict[int, float] = Field(description="k -> pass@k over the tasks with at least k scored rollouts.")
    always: int = Field(description="Tasks of which all scored repeats passed; sometimes and never likewise.")
    sometimes: int
    never: int
    rollouts: int
    scored: int
    unverified: int
    failed: int
    missing: int
    failures: dict[str, int] = Field(description="Failure kind -> rollouts, verifier failures included.")
    reused: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    median_duration_s: float | None
    elapsed_s: float | None


class Scorecard(Contract):
    """The end of a run, as stored, printed and returned by the flow."""

    run_id: str
    name: str
    store: str
    verdict_set: str
    lines: list[ScoreLine]

    @property
    def incomplete(self) -> int:
        """Planned rollouts without a durable, completed sample."""
        return sum(line.missing + line.failed for line in self.lines)
