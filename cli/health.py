"""`gym eval health`: what the checks found, for a person and for a gate."""

import asyncio
from pathlib import Path

from rich.console import Console

from cli.choosing import existing_store, store_option
from cli.recording import recording
from cli.terminal import one_line, print_json, results
from gymflow.analysis.health import SEVERITIES, affected_share, load_thresholds, worse
from gymflow.analysis.health.sheets import health_line, own_thresholds
from gymflow.contracts.health import CheckResult, HealthReport
from gymflow.errors import GateFailed, InputError
from gymflow.suggest import did_you_mean

STYLES: dict[str, str] = {"error": "red", "warning": "yellow", "info": ""}


def check_run(
    run: str,
    *,
    against: str | None,
    fail_on: str | None,
    thresholds: Path | None,
    store: str | None,
    inline: bool,
    json: bool,
) -> None:
    """Examine a run, print what was found, and hold the gate. With thresholds of one's own nothing is stored.

    With `against` the gate is on what got worse: a check counts where it affects a larger share of this run than of the other.
    """
    if fail_on is not None and fail_on not in SEVERITIES:
        raise InputError(f"--fail-on {fail_on}: {did_you_mean(fail_on, SEVERITIES)}")
    place, limits = existing_store(store), load_thresholds(thresholds) if thresholds else None
    run_id = place.resolve_run_id(run)
    earlier = place.resolve_run_id(against) if against else None
    failed: GateFailed | None = None
    with recording(inline):
        from flows.health import health

        try:
            held = asyncio.run(health(run_id, earlier, fail_on, limits, place.address))
        except GateFailed as error:
            failed, held = error, error.held
    report, before = held.report, held.before
    if json:
        value = report.model_dump(mode="json")
        print_json(value | {"worse": [check.check for check in worse(report, before)]} if before else value)
    else:
        _put(results(), report, before, store_option(place))
    if failed is not None:
        raise failed


def _put(console: Console, report: HealthReport, before: HealthReport | None, where: str) -> None:
    console.print(f"health of run {report.run_id}: {health_line(report)}", soft_wrap=True)
    shares = {check.check: affected_share(check, before) for check in before.checks} if before else {}
    rank = {severity: place for place, severity in enumerate(reversed(SEVERITIES))}
    for check in sorted(report.checks, key=lambda check: (rank[check.severity], -check.findings, check.check)):
        was = shares.get(check.check, 0.0)
        if not check.findings and not was:
            continue
        change = f"  ({_share(check, affected_share(check, report))}, was {_share(check, was)})" if before else ""
        console.print(
            f"\n{check.severity:<8} {check.check}  {check.findings}{change}",
            style=STYLES[check.severity],
            soft_wrap=True,
        )
        console.print(f"  {check.about}", style="dim", soft_wrap=True)
        for example in check.examples:
            where = " ".join(part for part in (example.rollout_id, example.locator) if part)
            console.print(f"  {where}: {one_line(example.message)}", soft_wrap=True)
        if check.findings > len(check.examples) and not own_thresholds(report):
            query = f"select * from findings where run_id = '{report.run_id}' and \"check\" = '{check.check}'"
            typed = f'  … gym sql "{query}"{where}'.replace('"check"', '\\"check\\"')
            console.print(typed, style="dim", soft_wrap=True)
    if blind := [check for check in report.checks if check.unobserved]:
        console.print("\nnot observed", style="bold")
        for check in blind:
            console.print(
                f"  {check.check}: {check.unobserved} of {check.unobserved + check.evaluated} rollouts", soft_wrap=True
            )


def _share(check: CheckResult, share: float) -> str:
    return f"{share:.0f} places" if check.scope == "run" else f"{share:.1%} of {check.scope}s"
