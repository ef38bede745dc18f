"""The gate on health: which findings are grave enough to fail, alone or against an earlier run."""

from typing import get_args

from gymflow.contracts.finding import Severity
from gymflow.contracts.health import CheckResult, HealthCheck, HealthReport
from gymflow.errors import GateFailed

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The mildest first."""


def hold_gate(held: HealthCheck, fail_on: Severity) -> None:
    """Raise GateFailed where a check of this severity or a graver one found something; beside an earlier run where it affects a larger
    share of this one (see `affected_share`)."""
    counted = worse(held.report, held.before) if held.before else held.report.checks
    grave = SEVERITIES[SEVERITIES.index(fail_on) :]
    if failing := [check for check in counted if check.findings and check.severity in grave]:
        named = ", ".join(f"{check.check} ({check.findings})" for check in failing)
        raise GateFailed(f"health: {named}", held)


def worse(report: HealthReport, before: HealthReport) -> list[CheckResult]:
    """Checks that affect a larger share of this run than of the other."""
    shares = {check.check: affected_share(check, before) for check in before.checks}
    return [check for check in report.checks if affected_share(check, report) > shares.get(check.check, 0.0)]


def affected_share(check: CheckResult, report: HealthReport) -> float:
    """Of what was planned, how much has a finding of this check: rollouts, or tasks for a check of tasks. A check of the run as a whole
    has nothing to be a share of: the number of places that it found."""
    planned = {"rollout": report.rollouts, "task": report.tasks, "run": 1}[check.scope]
    return check.affected / planned if planned else 0.0
