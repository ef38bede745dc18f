"""The tables of a reverify report."""

from collections.abc import Iterator
from typing import Any

from gymflow.analysis.sheets import Sheet, interval, number, share
from gymflow.contracts.reverification import Agreement, Flip, Reverification, ReverifyLine, VerifierChange

FLIPS_SHOWN = 50
REASON_WIDTH = 100


def reverify_sheets(report: Reverification) -> Iterator[Sheet]:
    """Scores side by side, what changed, flips, refusals, agreement with labels."""
    yield Sheet(
        headline(report),
        ("environment, agent", "old", "new", "difference [95 %]", "p", "rollouts", "passes gained, lost"),
        [
            (
                _name(line),
                number(line.old_score),
                number(line.new_score),
                f"{number(line.difference.value, sign='+')} {interval(line.difference.interval, sign='+')}".rstrip(),
                number(line.p, 4),
                str(line.rollouts),
                f"{line.gained}, {line.lost}",
            )
            for line in report.lines
        ],
    )
    if any(line.recovered or line.without for line in report.lines):
        yield Sheet(
            "rollouts with a reward in one set alone",
            ("environment, agent", "old headline", "new headline", "recovered", "without a reward now", "of them new"),
            [
                (
                    _name(line),
                    number(line.old_headline),
                    number(line.new_headline),
                    str(line.recovered),
                    str(line.without),
                    str(line.newly_without),
                )
                for line in report.lines
            ],
        )
    if changed := [row for change in report.changes for row in _changed(change)]:
        yield Sheet("what judges otherwise", ("environment", "what", "before", "now"), changed)
    if report.flips:
        passes = sorted(report.flips, key=lambda flip: flip.old_passed == flip.new_passed)
        shown = passes[:FLIPS_SHOWN]
        more = f" (the first {len(shown)}; --json has all)" if len(shown) < len(passes) else ""
        yield Sheet(
            f"{len(passes)} rollouts with another reward{more}",
            ("task", "repeat", "reward", "reason before", "reason now"),
            [
                (flip.task_id, str(flip.repeat), _flip(flip), _short(flip.old_reason), _short(flip.new_reason))
                for flip in shown
            ],
        )
    if report.refused:
        yield Sheet(
            "not judged",
            ("environment", "rollouts", "kind", "reason"),
            [
                (one.environment, str(one.rollouts), "kept" if one.kept else one.failure or "-", _short(one.reason))
                for one in report.refused
            ],
        )
    if report.agreement is not None:
        yield _agreement(report.agreement)


def headline(report: Reverification) -> str:
    """What was done, in a sentence."""
    what = f"{report.name}: run {report.run_id}"
    if report.unchanged:
        return (
            f"{what}, verdict set {report.new_set}: the verifier is unchanged, all {report.reused} verdicts were reused"
        )
    before = f" against {report.old_set}" if report.old_set and report.old_set != report.new_set else ""
    return f"{what}, verdict set {report.new_set}{before}: {report.scored} judged, {report.reused} reused"


def _changed(change: VerifierChange) -> Iterator[tuple[str, str, str, str]]:
    if change.verifier[0] != change.verifier[1]:
        yield change.environment, "verifier", *change.verifier
    if change.version[0] != change.version[1]:
        yield change.environment, "version", *change.version
    if change.code_changed:
        before, now = change.code_digest
        yield change.environment, "code", before[:12], now[:12]
    for name, (old, new) in change.parameters.items():
        yield change.environment, name, _value(old), _value(new)
    if change.judge[0] != change.judge[1]:
        yield change.environment, "judge", _value(change.judge[0]), _value(change.judge[1])


def _agreement(found: Agreement) -> Sheet:
    error = "" if found.kappa_standard_error is None else f" ± {found.kappa_standard_error:.3f}"
    return Sheet(
        f"agreement with people on {found.matched} rollouts ({found.labels} labels)",
        ("measure", "value"),
        [
            ("agreement", share(found.observed)),
            ("Cohen's kappa", number(found.kappa) + error if found.kappa is not None else f"- ({found.reason})"),
            ("passed by both", str(found.true_pass)),
            ("passed by the verifier alone", str(found.false_pass)),
            ("passed by people alone", str(found.false_fail)),
            ("passed by neither", str(found.true_fail)),
            ("sensitivity", share(found.sensitivity)),
            ("specificity", share(found.specificity)),
            ("pass rate, corrected", share(found.corrected_pass_rate)),
        ],
    )


def _name(line: ReverifyLine) -> str:
    return f"{line.environment}, {line.agent}"


def _flip(flip: Flip) -> str:
    return f"{flip.old_reward:g} -> {flip.new_reward:g}"


def _short(text: str | None) -> str:
    said = " ".join((text or "").split())
    return said if len(said) <= REASON_WIDTH else said[: REASON_WIDTH - 1] + "…"


def _value(value: Any) -> str:
    return "-" if value is None else _short(str(value))
