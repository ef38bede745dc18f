"""`gym eval health`: what the checks found, for a person and for a gate."""

from pathlib import Path
from typing import get_args

from rich.console import Console

from cli.terminal import one_line, print_json, results
from gymflow.analysis.health import examine, load_thresholds
from gymflow.analysis.health.sheets import health_line
from gymflow.contracts.finding import Severity
from gymflow.contracts.health import CheckResult, HealthReport
from gymflow.errors import GateFailed, InputError
from gymflow.paths import store_root
from gymflow.store import Store
from gymflow.suggest import did_you_mean

STYLES: dict[str, str] = {"error": "red", "warning": "yellow", "info": ""}
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def check_run(
    run: str, *, against: str | None, fail_on: str | None, thresholds: Path | None, store: str | None, json: bool
) -> None:
    """Examine a run, print what was found, and hold the gate.

    With `against` the gate is on what got worse: a check counts where it affects a larger share of this run than of the other.
    """
    if fail_on is not None and fail_on not in SEVERITIES:
        raise InputError(f"--fail-on {fail_on}: {did_you_mean(fail_on, SEVERITIES)}")
    place, limits = Store(store_root(store)), load_thresholds(thresholds)
    report = examine(place, place.resolve_run_id(run), limits)
    before = examine(place, place.resolve_run_id(against), limits) if against else None
    if json:
        value = report.model_dump(mode="json")
        print_json(value | {"worse": [check.check for check in worse(report, before)]} if before else value)
    else:
        _put(results(), report, before)
    if fail_on is not None:
        _gate(worse(report, before) if before else report.checks, fail_on)


def worse(report: HealthReport, before: HealthReport) -> list[CheckResult]:
    """Checks that affect a larger share of this run's rollouts than of the other's."""
    shares = {check.check: _share(check, before) for check in before.checks}
    return [check for check in report.checks if _share(check, report) > shares.get(check.check, 0.0)]


def _share(check: CheckResult, report: HealthReport) -> float:
    return check.affected / report.rollouts if report.rollouts else 0.0


def _gate(found: list[CheckResult], fail_on: str) -> None:
    held = SEVERITIES[SEVERITIES.index(fail_on) :]
    failing = [check for check in found if check.findings and check.severity in held]
    if failing:
        named = ", ".join(f"{check.check} ({check.findings})" for check in failing)
        raise GateFailed(f"health: {named}")


def _put(console: Console, report: HealthReport, before: HealthReport | None) -> None:
    console.print(f"health of run {report.run_id}: {health_line(report)}", soft_wrap=True)
    shares = {check.check: _share(check, before) for check in before.checks} if before else {}
    rank = {severity: place for place, severity in enumerate(reversed(SEVERITIES))}
    for check in sorted(report.checks, key=lambda check: (rank[check.severity], -check.findings, check.check)):
        was = shares.get(check.check, 0.0)
        if not check.findings and not was:
            continue
        change = f"  ({_share(check, report):.1%} of rollouts, was {was:.1%})" if before else ""
        console.print(
            f"\n{check.severity:<8} {check.check}  {check.findings}{change}",
            style=STYLES[check.severity],
            soft_wrap=True,
        )
        console.print(f"  {check.about}", style="dim", soft_wrap=True)
        for example in check.examples:
            where = " ".join(part for part in (example.rollout_id, example.locator) if part)
            console.print(f"  {where}: {one_line(example.message)}", soft_wrap=True)
        if check.findings > len(check.examples):
            query = f"select * from findings where run_id = '{report.run_id}' and \"check\" = '{check.check}'"
            console.print(f'  … gym sql "{query}"'.replace('"check"', '\\"check\\"'), style="dim", soft_wrap=True)
    if blind := [check for check in report.checks if check.unobserved]:
        console.print("\nnot observed", style="bold")
        for check in blind:
            console.print(
                f"  {check.check}: {check.unobserved} of {check.unobserved + check.evaluated} rollouts", soft_wrap=True
            )
