"""The health of a run's evidence: which checks found what, and how much could not be observed."""

from typing import Literal

from pydantic import Field

from gymflow.contracts.base import SCHEMA_VERSION, Contract
from gymflow.contracts.finding import Finding, Severity


class CheckResult(Contract):
    """What one check came to. The counts of rollouts are those of stored ones and add up to all of them."""

    check: str
    severity: Severity
    about: str
    scope: Literal["run", "task", "rollout"]
    findings: int
    affected: int = Field(description="Rollouts (tasks, for a check of tasks) with a finding.")
    evaluated: int = Field(description="Rollouts in which the check could have found something; 0 for other scopes.")
    not_applicable: int = Field(description="There was nothing to look at, such as tool calls.")
    unobserved: int = Field(description="There was, and the evidence does not show it.")
    examples: list[Finding] = Field(description="The first few findings.")


class HealthReport(Contract):
    """`reports/health.json` without its list `findings`, which the view `findings` reads.

    A rollout is unhealthy if it has a finding that is a warning or an error; healthy if it has none and every check that
    applies to it could be made; else unobserved.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    verdict_set: str | None
    records: int | None = Field(
        None, description="How far it read: records of the run with smaller sequence numbers. Others came later."
    )
    rollouts: int = Field(description="Planned; the other counts add up to it.")
    tasks: int = Field(0, description="Planned.")
    healthy: int
    unhealthy: int
    unobserved: int
    missing: int
    unobserved_share: float = Field(
        description="Of all applicable pairs of check and rollout, how many could not be made."
    )
    thresholds: dict[str, float]
    checks: list[CheckResult]

    def count(self, severity: Severity) -> int:
        """Findings of a severity."""
        return sum(check.findings for check in self.checks if check.severity == severity)


class HealthCheck(Contract):
    """A run's report beside that of the earlier run which it was held against, if any."""

    report: HealthReport
    before: HealthReport | None = None
