"""Reports as tables of text: what a terminal prints and what the Prefect UI shows are the same rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gymflow.contracts.comparison import CandidateLine, Comparison, Difference
from gymflow.contracts.estimate import Estimate, Interval
from gymflow.contracts.merge import MergeReport
from gymflow.contracts.profile import AtK, Costs, Profile, ProfileLine, Quantiles
from gymflow.contracts.report import Scorecard, ScoreLine

Cells = Sequence[str]
FLIPS_SHOWN = 10
PREDICTIONS = {
    "came": "yes",
    "came_in_part": "in part",
    "not_shown": "not shown",
    "got_worse": "no, it got worse",
    "not_comparable": "cannot be told",
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table with its title; the first column holds names, the others numbers."""

    title: str
    columns: Cells
    rows: Sequence[Cells]


def number(value: float | None, digits: int = 3) -> str:
    """A number, or `-` where it is undefined."""
    return "-" if value is None else f"{value:.{digits}f}"


def interval(found: Interval | None, digits: int = 3) -> str:
    """`[low, high]`, or nothing where it is undefined."""
    return "" if found is None else f"[{found.low:.{digits}f}, {found.high:.{digits}f}]"


def estimate(found: Estimate) -> str:
    """Value and interval."""
    return f"{number(found.value)} {interval(found.interval)}".rstrip()


def share(value: float | None) -> str:
    """A share in percent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def whole(value: float | None) -> str:
    """A large number with separators."""
    return "-" if value is None else f"{value:,.0f}"


def scorecard_sheets(card: Scorecard) -> Iterator[Sheet]:
    """The lines of a scorecard."""
    yield Sheet(
        f"{card.name}: run {card.run_id}",
        ("environment", "agent", "score ± SE [95 %]", "pass@k", "tasks", "scored", "failed", "missing", "unverified"),
        [
            (
                line.environment,
                line.agent,
                _score(line),
                ", ".join(f"@{k} {value:.3f}" for k, value in line.pass_at.items()),
                str(line.tasks),
                f"{line.scored} of {line.rollouts}",
                str(line.failed),
                str(line.missing),
                str(line.unverified),
            )
            for line in card.lines
        ],
    )


def profile_sheets(profile: Profile) -> Iterator[Sheet]:
    """All tables of a profile."""
    confidence = f"[{100 * profile.confidence:g} %]"
    yield Sheet(
        f"{profile.name}: run {profile.run_id}, verdict set {profile.verdict_set or 'none yet'}",
        (
            "environment, agent",
            f"score {confidence}",
            "SE by task",
            "by cluster",
            "t",
            "bootstrap",
            "pass rate",
            "tasks",
            "coverage",
            "bounds",
        ),
        [
            (
                _name(line),
                estimate(line.score),
                number(line.error_by_task),
                number(line.score.standard_error) if line.score.groups != line.score.tasks else "-",
                interval(line.score_t),
                interval(line.score_bootstrap),
                estimate(line.pass_rate),
                f"{line.score.tasks} of {line.tasks}",
                f"{line.scored} of {line.rollouts} ({share(line.coverage)})",
                "-" if line.lowest is None else f"{number(line.lowest)} to {number(line.highest)}",
            )
            for line in profile.lines
        ],
    )
    for line in profile.lines:
        yield from _line_sheets(line)


def comparison_sheets(comparison: Comparison) -> Iterator[Sheet]:
    """All tables of a comparison: candidates as rows, so that an ablation over one field is one table."""
    lines = comparison.candidates
    first = lines[0]
    yield Sheet(
        f"against {comparison.base_name}: run {comparison.base_run_id}, {comparison.base_agent}",
        (
            "run",
            "score",
            f"difference [{100 * comparison.confidence:g} %]",
            "SE",
            "p",
            "p (Holm)",
            "pass rate",
            "tokens",
            "seconds",
            "tasks",
        ),
        [
            (
                f"{_base_label(comparison)} (base)",
                number(first.score.base),
                "",
                "",
                "",
                "",
                number(first.pass_rate.base),
                *_spent(first.costs, "base"),
                "",
            ),
            *(
                (
                    comparison.label(line),
                    number(line.score.candidate),
                    difference(line.score),
                    number(line.score.standard_error),
                    f"{number(line.test.p, 4)} {line.test.name}",
                    number(line.test.p_holm, 4),
                    number(line.pass_rate.candidate),
                    *_spent(line.costs, "candidate"),
                    str(line.score.tasks),
                )
                for line in lines
            ),
        ],
    )
    if tested := [(line, line.prediction) for line in lines if line.prediction is not None]:
        yield Sheet(
            "decisions that these runs test",
            ("decision", "run", "intervention", "predicted at most", "came", "because"),
            [
                (
                    found.decision_id,
                    line.run_id,
                    f"{found.intervention} ({found.environment})",
                    "-" if found.predicted is None else f"{found.predicted:+.3f}",
                    PREDICTIONS[found.outcome],
                    found.detail,
                )
                for line, found in tested
            ],
        )
    for line in lines:
        yield from _candidate_sheets(comparison.label(line), line)
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


def _base_label(comparison: Comparison) -> str:
    own = all(line.run_id == comparison.base_run_id for line in comparison.candidates)
    return comparison.base_agent if own else comparison.base_name


def _spent(costs: dict[str, Difference], side: Literal["base", "candidate"]) -> Cells:
    """Tokens and seconds of a rollout on one side."""
    tokens = [getattr(costs[name], side) for name in ("prompt_tokens", "completion_tokens")]
    known = [one for one in tokens if one is not None]
    return whole(sum(known) if known else None), number(getattr(costs["duration_s"], side), 2)


def _candidate_sheets(label: str, line: CandidateLine) -> Iterator[Sheet]:
    overlap, power = line.overlap, line.power
    gap = "" if power.reason is None else f" ({power.reason})"
    yield Sheet(
        f"{label}, run {line.run_id}: what was compared",
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


def merge_sheets(report: MergeReport) -> Iterator[Sheet]:
    """What became of merged runs."""
    yield Sheet(
        f"{report.run_id}: merged from {', '.join(report.sources)}",
        ("", "value"),
        [
            ("rollouts planned, completed, failed", f"{report.planned}, {report.completed}, {report.failed}"),
            ("held by several runs as the same sample", str(report.equal)),
            ("held by several runs as different samples", str(len(report.conflicts))),
            ("missing shards", ", ".join(report.missing_shards) or "none"),
            ("verdict sets", ", ".join(report.verdict_sets) or "none that all runs have"),
            *(
                (f"left out: verdict set {name}", f"not in {', '.join(lacking)}")
                for name, lacking in report.left_out_verdict_sets.items()
            ),
        ],
    )
    if report.conflicts:
        yield Sheet(
            f"{report.run_id}: different samples of one rollout; the one that began first counts",
            ("task", "repeat", "counts", "left out"),
            [
                (f"{one.environment}, {one.task_id}, {one.agent}", str(one.repeat), one.kept, ", ".join(one.left_out))
                for one in report.conflicts
            ],
        )
    if report.missing:
        yield Sheet(
            f"{report.run_id}: not completed",
            ("task", "repeats"),
            [
                (f"{one.environment}, {one.task_id}, {one.agent}", ", ".join(map(str, one.repeats)))
                for one in report.missing
            ],
        )


def _score(line: ScoreLine) -> str:
    """With standard error and interval; the error is left out where all tasks came to the same: it would say ± 0."""
    error = f" ± {number(line.standard_error)}" if line.standard_error else ""
    return f"{number(line.score)}{error} {interval(line.interval)}".rstrip()


def difference(found: Difference) -> str:
    """Signed, with its interval."""
    if found.difference is None:
        return "-"
    ends = found.interval
    return f"{found.difference:+.3f}" + ("" if ends is None else f" [{ends.low:+.3f}, {ends.high:+.3f}]")


def _cost(found: Difference) -> str:
    if found.difference is None:
        return "-"
    part = f" ({100 * found.difference / abs(found.base):+.1f} %)" if found.base else ""
    return f"{found.difference:+.4g}{part}"


def _errors(line: CandidateLine) -> str:
    clustered = line.score.standard_error if line.score.groups != line.score.tasks else None
    return ", ".join(number(one) for one in (line.score.paired_error, clustered, line.unpaired_error))


def _line_sheets(line: ProfileLine) -> Iterator[Sheet]:
    name = _name(line)
    metrics = {
        "pass@k": line.pass_at,
        "pass^k": line.pass_hat,
        "majority@k": line.majority_at,
        "avg-of-k": line.average_of,
    }
    shown = {metric: {one.k: one for one in found} for metric, found in metrics.items() if found}
    yield Sheet(
        f"{name}: k samples",
        ("k", *shown, "tasks"),
        [
            (str(one.k), *(_at(found.get(one.k)) for found in shown.values()), str(one.estimate.tasks))
            for one in line.pass_at
        ],
    )
    yield Sheet(
        f"{name}: how the tasks divide",
        ("pass rate", *(band.name for band in line.bands)),
        [
            ("tasks", *(str(band.tasks) for band in line.bands)),
            ("share", *(share(band.share) for band in line.bands)),
        ],
    )
    variance = line.variance
    yield Sheet(
        f"{name}: variance of the reward",
        ("between tasks", "within a task", ""),
        [(number(variance.between_tasks, 4), number(variance.within_task, 4), variance.reason or "")],
    )
    if line.components:
        yield Sheet(
            f"{name}: components of the reward",
            ("component", "mean", "SE"),
            [(key, estimate(one), number(one.standard_error)) for key, one in line.components.items()],
        )
    if line.slices:
        yield Sheet(
            f"{name}: slices",
            ("slice", "score", "pass rate", "tasks", "rollouts"),
            [
                (f"{one.by}={one.value}", estimate(one.score), estimate(one.pass_rate), str(one.tasks), str(one.scored))
                for one in line.slices
            ],
        )
    yield from _cost_sheets(name, line.costs)


def _cost_sheets(name: str, costs: Costs) -> Iterator[Sheet]:
    counts = f"{costs.rollouts} rollouts" + (f", {costs.reused} of them sampled in another run" if costs.reused else "")
    yield Sheet(
        f"{name}: cost of {counts}",
        ("tokens", "total", "per rollout"),
        [
            (kind.replace("_", " "), whole(used.total), number(used.per_rollout, 1))
            for kind, used in costs.tokens.items()
            if used.total is not None
        ]
        + [
            ("US dollars", number(costs.cost_usd, 4), number(_each(costs.cost_usd, costs.rollouts), 6)),
            ("per solved task", _dollars(costs.cost_per_solved_usd), f"{whole(costs.tokens_per_solved)} tokens"),
        ],
    )
    quantiles = {
        "turns": costs.turns,
        "tool calls": costs.tool_calls,
        "model latency, s": costs.model_latency_s,
        "first token, s": costs.first_token_s,
        "wall, s": costs.wall_s,
    }
    yield Sheet(
        f"{name}: {costs.model_calls} model calls, {costs.model_errors} failed",
        ("per rollout or call", "mean", "p50", "p90", "p99", "max"),
        [(key, *_cells(found)) for key, found in quantiles.items() if found.count],
    )
    if costs.tools:
        yield Sheet(
            f"{name}: tools",
            ("tool", "calls", "errors", "latency p50, s", "p90", "p99"),
            [
                (tool.name, str(tool.calls), share(tool.error_rate), *_cells(tool.latency_s)[1:4])
                for tool in costs.tools
            ],
        )


def _cells(found: Quantiles) -> Cells:
    return [number(value) for value in (found.mean, found.p50, found.p90, found.p99, found.max)]


def _each(total: float | None, count: int) -> float | None:
    return None if total is None or not count else total / count


def _dollars(value: float | None) -> str:
    return "-" if value is None else f"${value:.4f}"


def _at(found: AtK | None) -> str:
    return "-" if found is None else estimate(found.estimate)


def _name(line: ProfileLine) -> str:
    return f"{line.environment}, {line.agent}"
