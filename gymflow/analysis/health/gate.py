"""The gate on health: which findings are grave enough to fail, alone or against an earlier run."""

from typing import get_args

from gymflow.contracts.finding import Severity
from gymflow.contracts.health import CheckResult, HealthReport
from gymflow.errors import GateFailed

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The mildest first."""


def hold_gate(report: HealthReport, before: HealthReport | None, fail_on: Severity) -> None:
    """Raise GateFailed where a check of this severity or a graver one found something; with `before` where it affects a larger share
    of this run than of that one."""
    counted = worse(report, before) if before else report.checks
    grave = SEVERITIES[SEVERITIES.index(fail_on) :]
    if failing := [check for check in counted if check.findings and check.severity in grave]:
        named = ", ".join(f"{check.check} ({check.findings})" for check in failing)
        raise GateFailed(f"health: {named}")


def worse(report: HealthReport, before: HealthReport) -> list[CheckResult]:
    """Checks that affect a larger share of this run's rollouts than of the other's."""
    shares = {check.check: affected_share(check, before) for check in before.checks}
    return [check for check in report.checks if affected_share(check, report) > shares.get(check.check, 0.0)]


def affected_share(check: CheckResult, report: HealthReport) -> float:
    """Of the planned rollouts, those with a finding of this check."""
    return check.affected / report.rollouts if report.rollouts else 0.0
