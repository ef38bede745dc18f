"""A comparison in words and tables."""

from collections.abc import Iterator
from typing import Literal

from gymflow.analysis.compare.varying import headline
from gymflow.analysis.sheets import Sheet, interval, number, whole
from gymflow.contracts.comparison import CandidateLine, Comparison, Difference

FLIPS_SHOWN = 10
PREDICTIONS = {
    "came": "yes",
    "came_in_part": "in part",
    "not_shown": "not shown",
    "got_worse": "no, it got worse",
    "not_comparable": "cannot be told",
}


def headlines(comparison: Comparison) -> list[str]:
    """What differs between the base and each candidate, each thing said once."""
    several = len(comparison.candidates) > 1
    lines = [
        headline(comparison.label(line) if several else "", line.varies, line.details) for line in comparison.candidates
    ]
    return list(dict.fromkeys(lines))


def warnings(comparison: Comparison) -> list[str]:
    """What a reader should know before reading the numbers."""
    return [f"{comparison.label(line)}: {warning}" for line in comparison.candidates for warning in line.warnings]


def comparison_sheets(comparison: Comparison) -> Iterator[Sheet]:
    """All tables of a comparison: candidates as rows, so that an ablation over one field is one table; then what was asked of it."""
    yield _scores(comparison)
    if len(comparison.candidates) > 1:
        yield _costs(comparison)
    if comparison.gates:
        yield Sheet(
            "gates",
            ("gate", "run", "observed", "result"),
            [
                (
                    gate.gate,
                    gate.run_id,
                    "-" if gate.observed is None else f"{gate.observed:.4g}",
                    "holds" if gate.passed else "FAILED" + (f": {gate.reason}" if gate.reason else ""),
                )
                for gate in comparison.gates
            ],
        )
    if tested := [(line, line.prediction) for line in comparison.candidates if line.prediction is not None]:
        yield Sheet(
            "decisions that these runs test",
            ("decision", "run", "intervention", "predicted at most", "came", "because"),
            [
                (
                    found.decision_id,
                    line.run_id,
                    f"{found.intervention} ({found.environment})",
                    number(found.predicted, sign="+"),
                    PREDICTIONS[found.outcome],
                    found.detail,
                )
                for line, found in tested
            ],
        )
    for line in comparison.candidates:
        yield from _candidate_sheets(comparison.label(line), line)


def _scores(comparison: Comparison) -> Sheet:
    lines = comparison.candidates
    first = lines[0]
    graded = any(line.score.candidate != line.pass_rate.candidate for line in lines)
    columns = {
        "run": [_base(comparison), *map(comparison.label, lines)],
        "score": [number(first.score.base), *(number(line.score.candidate) for line in lines)],
        f"difference [{100 * comparison.confidence:g} %]": ["", *(difference(line.score) for line in lines)],
        "SE": ["", *(number(line.score.standard_error) for line in lines)],
        f"p ({', '.join(sorted({line.test.name for line in lines}))})": [
            "",
            *(number(line.test.p, 4) for line in lines),
        ],
    }
    if len(lines) > 1:
        columns["p (Holm)"] = ["", *(number(line.test.p_holm, 4) for line in lines)]
    if graded:
        columns["pass rate"] = [number(first.pass_rate.base), *(number(line.pass_rate.candidate) for line in lines)]
    columns["tasks"] = ["", *(str(line.score.tasks) for line in lines)]
    title = f"against {comparison.base_name}: run {comparison.base_run_id}, {comparison.base_agent}"
    return Sheet(title, tuple(columns), list(zip(*columns.values(), strict=True)))


def _costs(comparison: Comparison) -> Sheet:
    """What a rollout takes on average, over the tasks that the base and the candidate both have."""
    sides: list[tuple[str, dict[str, Difference], Literal["base", "candidate"]]] = [
        (_base(comparison), comparison.candidates[0].costs, "base"),
        *((comparison.label(line), line.costs, "candidate") for line in comparison.candidates),
    ]

    def of(costs: dict[str, Difference], name: str, side: str) -> float | None:
        value: float | None = getattr(costs[name], side)
        return value

    return Sheet(
        "what a rollout takes",
        ("run", "turns", "prompt tokens", "completion tokens", "seconds", "US dollars"),
        [
            (
                name,
                number(of(costs, "turns", side), 2),
                whole(of(costs, "prompt_tokens", side)),
                whole(of(costs, "completion_tokens", side)),
                number(of(costs, "duration_s", side), 2),
                number(of(costs, "cost_usd", side), 5),
            )
            for name, costs, side in sides
        ],
    )


def _base(comparison: Comparison) -> str:
    own = all(line.run_id == comparison.base_run_id for line in comparison.candidates)
    return f"{comparison.base_agent if own else comparison.base_name} (base)"


def _candidate_sheets(label: str, line: CandidateLine) -> Iterator[Sheet]:
    overlap, power = line.overlap, line.power
    gap = "" if power.reason is None else f" ({power.reason})"
    yield Sheet(
        f"{label}{'' if label == line.run_id else f', run {line.run_id}'}: what was compared",
        ("", "value"),
        [
            ("tasks on both sides, scored on both", f"{overlap.tasks}, {overlap.scored}"),
            ("tasks of the base alone, of the candidate alone", f"{overlap.only_base}, {overlap.only_candidate}"),
            ("samples shared", str(overlap.shared_samples)),
            ("standard error paired, clustered, unpaired", _errors(line)),
            ("correlation of the two sides", number(line.correlation)),
            ("tasks that pass more often, less often", f"{line.test.gained}, {line.test.lost}"),
            ("least difference that this size would find", number(power.detectable)),
            (f"to find {power.effect:g}: tasks at these repeats", whole(power.tasks_needed)),
            (f"to find {power.effect:g}: repeats of these tasks", whole(power.repeats_needed) + gap),
        ],
    )
    environments = [one for one in line.slices if one.by == "environment"]
    slices = [one for one in line.slices if one.by != "environment" or len(environments) > 1]
    if slices:
        yield Sheet(
            f"{label}: slices",
            ("slice", "base", "candidate", "difference", "p", "tasks"),
            [
                (
                    f"{one.by}={one.value}",
                    number(one.score.base),
                    number(one.score.candidate),
                    difference(one.score),
                    number(one.score.p, 4),
                    str(one.score.tasks),
                )
                for one in slices
            ],
        )
    costs = {name: one for name, one in line.costs.items() if one.tasks}
    if costs:
        yield Sheet(
            f"{label}: cost of a rollout",
            ("", "base", "candidate", "difference", "p"),
            [
                (name, f"{one.base:.4g}", f"{one.candidate:.4g}", _cost(one), number(one.p, 4))
                for name, one in costs.items()
                if one.base is not None
            ],
        )
    if line.flips.listed:
        shown = line.flips.listed[:FLIPS_SHOWN]
        yield Sheet(
            f"{label}: flips, {line.flips.gained} gained and {line.flips.lost} lost"
            + (f" (the widest {len(shown)})" if len(shown) < line.flips.gained + line.flips.lost else ""),
            ("task", "environment", "direction", "base", "candidate"),
            [
                (flip.task_id, flip.environment, flip.direction, number(flip.base, 2), number(flip.candidate, 2))
                for flip in shown
            ],
        )


def difference(found: Difference) -> str:
    """Signed, with its interval."""
    if found.difference is None:
        return "-"
    return f"{number(found.difference, sign='+')} {interval(found.interval, sign='+')}".rstrip()


def _cost(found: Difference) -> str:
    if found.difference is None:
        return "-"
    part = f" ({100 * (found.difference / abs(found.base)):+.1f} %)" if found.base else ""
    return f"{found.difference:+.4g}{part}"


def _errors(line: CandidateLine) -> str:
    clustered = line.score.standard_error if line.score.groups != line.score.tasks else None
    return ", ".join(number(one) for one in (line.score.paired_error, clustered, line.unpaired_error))
