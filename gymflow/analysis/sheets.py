"""Reports as tables of text: what a terminal prints and what the Prefect UI shows are the same rows."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gymflow.analysis.profiling import estimates_of
from gymflow.contracts.estimate import Estimate, Interval
from gymflow.contracts.merge import MergeReport
from gymflow.contracts.profile import AtK, Costs, Profile, ProfileLine, Quantiles
from gymflow.contracts.report import Scorecard, ScoreLine
from gymflow.metrics.quality import EASY, HARD

Cells = Sequence[str]
NAMES_SHOWN = 6
LONG = 1e9
"""Numbers from here on are written with an exponent."""


_NUMBER = re.compile(r"[-+≥$\[ ]*\d(?!.*[^\W\d_]{3})")
"""Begins with a number, and no words follow it: `0.604 ± 0.056 [0.489, 0.709]`, `240 of 240`."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table with its title; the first column holds names."""

    title: str
    columns: Cells
    rows: Sequence[Cells]

    @property
    def numbers(self) -> list[bool]:
        """By column, whether it holds numbers, which stand on the right; what is undefined (`-`) or left out does not count."""
        columns = ([row[at] for row in self.rows if row[at] not in ("", "-")] for at in range(len(self.columns)))
        return [bool(at and cells and all(map(_NUMBER.match, cells))) for at, cells in enumerate(columns)]


def number(value: float | None, digits: int = 3, sign: str = "") -> str:
    """A number, or `-` where it is undefined; with `sign="+"` also a positive one has its sign."""
    if value is None:
        return "-"
    return f"{value:{sign}.{digits}f}" if abs(value) < LONG else f"{value:{sign}.4g}"


def interval(found: Interval | None, sign: str = "") -> str:
    """`[low, high]`, or nothing where it is undefined."""
    return "" if found is None else f"[{number(found.low, sign=sign)}, {number(found.high, sign=sign)}]"


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
        ("environment, agent", "score ± SE [95 %]", "pass@k", "tasks", "scored", "without a score"),
        [
            (
                _name(line),
                _score(line),
                ", ".join(f"@{k} {value:.3f}" for k, value in line.pass_at.items()),
                str(line.tasks),
                f"{line.scored} of {line.rollouts}",
                _lost(line),
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
        ),
        [
            (
                _name(line),
                estimate(line.score),
                number(line.error_by_task),
                number(line.score.standard_error) if line.score.groups != line.score.tasks else "-",
                interval(line.score_t),
                interval(line.score_bootstrap),
            )
            for line in profile.lines
        ],
    )
    yield Sheet(
        "coverage; bounds are the score if all others had the least reward, or the most",
        ("environment, agent", "pass rate", "tasks", "coverage", "bounds"),
        [
            (
                _name(line),
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


def _lost(line: ScoreLine) -> str:
    """Rollouts that are in no mean, by what became of them."""
    kinds = {"failed": line.failed, "missing": line.missing, "unverified": line.unverified}
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count) or "-"


def _score(line: ScoreLine) -> str:
    """With standard error and interval; the error is left out where all tasks came to the same: it would say ± 0."""
    error = f" ± {number(line.standard_error)}" if line.standard_error else ""
    return f"{number(line.score)}{error} {interval(line.interval)}".rstrip()


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
        f"{name}: how the tasks divide; useful for training are {share(HARD)} to {share(EASY)} passed",
        ("pass rate", *(band.name for band in line.bands)),
        [
            ("tasks", *(str(band.tasks) for band in line.bands)),
            ("share", *(share(band.share) for band in line.bands)),
        ],
    )
    variance = line.variance
    yield Sheet(
        f"{name}: variance of the reward" + (f" ({variance.reason})" if variance.reason else ""),
        ("between tasks", "within a task"),
        [(number(variance.between_tasks, 4), number(variance.within_task, 4))],
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
    if undefined := _undefined(line):
        yield Sheet(
            f"{name}: what is not defined, or has no error",
            ("why", "estimates"),
            [(reason, _some(names)) for reason, names in undefined.items()],
        )


def _undefined(line: ProfileLine) -> dict[str, list[str]]:
    """Reason -> the estimates that are null, or without an error, for it."""
    found: dict[str, list[str]] = {}
    for metric, k, cut, one in estimates_of(line):
        if one.reason is not None:
            name = metric if k is None else f"{metric}({k})"
            found.setdefault(one.reason, []).append(name if cut is None else f"{name} of {cut}")
    if line.costs.reason is not None:
        found.setdefault(line.costs.reason, []).append("cost of a solved task")
    return found


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


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _cells(found: Quantiles) -> Cells:
    return [number(value) for value in (found.mean, found.p50, found.p90, found.p99, found.max)]


def _each(total: float | None, count: int) -> float | None:
    return None if total is None or not count else total / count


def _dollars(value: float | None) -> str:
    return "-" if value is None else f"${value:.4f}"


def _at(found: AtK | None) -> str:
    return "-" if found is None else estimate(found.estimate)


def _name(line: ProfileLine | ScoreLine) -> str:
    return f"{line.environment}, {line.agent}"
