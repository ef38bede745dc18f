"""The profile of a run: how good, how sure, how even, at what cost. Undefined numbers are null with a reason."""

from pydantic import Field

from gymflow.contracts.base import Contract
from gymflow.contracts.estimate import Estimate, Interval


class AtK(Contract):
    """A metric of k samples, over the tasks with at least k scored rollouts."""

    k: int
    estimate: Estimate


class Band(Contract):
    """Tasks whose pass rate lies in one band."""

    name: str
    low: float
    high: float = Field(description="Both ends belong to `never` and `always` alone; the bands between are open.")
    tasks: int
    share: float | None


class Variance(Contract):
    """Variance of the reward, split."""

    between_tasks: float | None
    within_task: float | None
    reason: str | None = None


class Slice(Contract):
    """The tasks that share a value."""

    by: str
    value: str
    tasks: int
    scored: int = Field(description="Rollouts.")
    score: Estimate
    pass_rate: Estimate


class Quantiles(Contract):
    """Over so many observations; null where there is none."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None


class TokenUse(Contract):
    """Tokens of one kind over a line's rollouts; null where no rollout reports them."""

    total: int | None
    per_rollout: float | None
    reported: int = Field(description="Rollouts that report them.")


class ToolUse(Contract):
    """The calls of one tool. Latency in seconds."""

    name: str
    calls: int
    errors: int = Field(description="Calls that did not end `ok`: errors, malformed, unknown, not executed.")
    error_rate: float
    latency_s: Quantiles


class Costs(Contract):
    """What the rollouts of a line took, failed ones included. Times in seconds, money in US dollars."""

    rollouts: int
    reused: int = Field(description="Of them, sampled in another run: they cost nothing here.")
    tokens: dict[str, TokenUse] = Field(description="By kind: prompt, completion, reasoning, cached, cache_write.")
    turns: Quantiles
    tool_calls: Quantiles
    tools: list[ToolUse]
    model_calls: int
    model_errors: int
    model_latency_s: Quantiles
    first_token_s: Quantiles
    wall_s: Quantiles
    cost_usd: float | None
    cost_per_solved_usd: float | None = Field(
        description="Mean cost of a rollout over the mean pass rate: what one solved task costs at one attempt each."
    )
    tokens_per_solved: float | None = Field(description="Likewise in prompt and completion tokens.")
    reason: str | None = None


class ProfileLine(Contract):
    """One environment and agent."""

    environment: str
    agent: str
    tasks: int
    unscored_tasks: int
    rollouts: int
    scored: int
    unverified: int
    failed: int
    missing: int
    coverage: float | None = Field(description="Scored over planned rollouts.")
    lowest: float | None = Field(description="The score if every rollout without a reward had the least one.")
    highest: float | None
    least_repeats: int
    most_repeats: int
    score: Estimate = Field(
        description="Its standard error is clustered by `cluster` where tasks have one, else by task."
    )
    error_by_task: float | None = Field(description="Standard error of the score clustered by task alone.")
    score_t: Interval | None = Field(
        description="Student's t for the same score, not confined to the reward range; null where all tasks came to the same."
    )
    score_bootstrap: Interval | None = Field(description="Likewise; whole tasks, or clusters of them, are drawn.")
    pass_rate: Estimate
    variance: Variance
    pass_at: list[AtK]
    pass_hat: list[AtK]
    majority_at: list[AtK] = Field(
        description="Over extracted answers; empty where the verifier extracts none. An unanswered rollout is wrong, unless the "
        "verifier passed it: then it is a vote of its own."
    )
    average_of: list[AtK] = Field(description="Mean reward of k samples: the same for every k; its error is not.")
    unanswered: float | None = Field(
        description="Share of scored rollouts without an extracted answer; 1 where the verifier extracts none."
    )
    bands: list[Band]
    components: dict[str, Estimate]
    slices: list[Slice]
    costs: Costs


class Profile(Contract):
    """`reports/profile-<verdict set>.json` of a run."""

    run_id: str
    name: str
    store: str
    verdict_set: str | None
    confidence: float
    seed: int = Field(description="Of the bootstrap.")
    resamples: int
    lines: list[ProfileLine]
