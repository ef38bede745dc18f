"""A health report as tables of text, for the Prefect UI."""

from collections.abc import Iterator

from gymflow.analysis.health.thresholds import load_thresholds
from gymflow.analysis.sheets import Sheet, share
from gymflow.contracts.health import HealthReport


def own_thresholds(report: HealthReport) -> str:
    """Which thresholds differ from the shipped ones, such as `same_call_times 5 (shipped: 3)`; empty: none."""
    shipped = load_thresholds().model_dump()
    return ", ".join(
        f"{name} {value:g} (shipped: {shipped[name]:g})"
        for name, value in report.thresholds.items()
        if name in shipped and value != shipped[name]
    )


def health_line(report: HealthReport) -> str:
    """The counts in a sentence."""
    parts = [f"{report.healthy} of {report.rollouts} rollouts healthy"]
    if report.unhealthy:
        parts.append(
            f"{report.unhealthy} unhealthy ({report.count('error')} errors, {report.count('warning')} warnings)"
        )
    if report.unobserved:
        parts.append(f"{report.unobserved} unobserved")
    if report.missing:
        parts.append(f"{report.missing} missing")
    line = f"{', '.join(parts)}; {report.unobserved_share:.1%} of what applies could not be observed"
    own = own_thresholds(report)
    return f"{line}; not stored, for thresholds differ: {own}" if own else line


def health_sheets(report: HealthReport) -> Iterator[Sheet]:
    """What was found, the worst first, and what could not be observed."""
    rank = {"error": 0, "warning": 1, "info": 2}
    found = sorted(
        (check for check in report.checks if check.findings), key=lambda check: (rank[check.severity], -check.findings)
    )
    yield Sheet(
        f"health of run {report.run_id}",
        ("check", "severity", "findings", "affected", "such as"),
        [
            (check.check, check.severity, str(check.findings), str(check.affected), check.examples[0].message)
            for check in found
        ],
    )
    if blind := [check for check in report.checks if check.unobserved]:
        yield Sheet(
            "not observed",
            ("check", "rollouts", "share of those it applies to"),
            [
                (check.check, str(check.unobserved), share(check.unobserved / (check.unobserved + check.evaluated)))
                for check in blind
            ],
        )
