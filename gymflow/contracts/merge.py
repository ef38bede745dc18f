"""What became of runs that were put together."""

from pydantic import Field

from gymflow.contracts.base import Contract


class Conflict(Contract):
    """Different samples of one planned rollout. The one that began first counts (by evidence digest where both did at once)."""

    environment: str
    agent: str
    task_id: str
    repeat: int
    kept: str = Field(description="Run whose sample counts.")
    left_out: list[str] = Field(description="Runs that hold another.")


class MissingRollouts(Contract):
    """Planned rollouts of one task that no source has completed, as far as a source planned them."""

    environment: str
    agent: str
    task_id: str
    repeats: list[int]


class MergeReport(Contract):
    """`reports/merge.json` of the merged run. It depends on the set of sources, not on their order."""

    run_id: str
    sources: list[str] = Field(description="Runs that sampled what it holds, sorted.")
    planned: int
    completed: int
    failed: int
    equal: int = Field(description="Rollouts that several sources hold as the same sample.")
    conflicts: list[Conflict]
    missing: list[MissingRollouts]
    missing_shards: list[str] = Field(description="Such as 1/3: shards of the sources' plan of which no source is one.")
    verdict_sets: list[str] = Field(description="Those that every source has; the last is current.")
    left_out_verdict_sets: dict[str, list[str]] = Field(
        description="Verdict set -> the sources that lack it. Reverify the merged run to have it complete."
    )

    @property
    def incomplete(self) -> int:
        """Planned rollouts without a completed sample."""
        return self.planned - self.completed
