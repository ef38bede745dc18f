"""The page's plots, drawn as SVG from numbers that are there already."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.analysis.page.gathering import Contents
from gymflow.analysis.page.markup import Markup, element, joined
from gymflow.contracts.estimate import Interval
from gymflow.contracts.profile import ProfileLine

WIDTH, HEIGHT = 340, 220
LEFT, RIGHT, TOP, BOTTOM = 38, 10, 12, 34
SERIES = 6
"""Colours; a further line of the run has the last one."""
MOST_POINTS = 2000

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Axes:
    """Scales from values to places, and what is drawn of them."""

    x: Scale
    y: Scale
    frame: Markup


def plots(contents: Contents) -> Iterator[Markup]:
    """Those for which the run has numbers, each a figure."""
    lines = contents.profile.lines
    if any(one.k > 1 and one.estimate.value is not None for line in lines for one in line.pass_at):
        yield _figure(_pass_at_k_caption(lines), _pass_at_k(lines))
    if any(line.scored for line in lines):
        yield _figure("pass rate of the tasks, the hardest first", _pass_rates(contents))
        if (drawn := _reward_tokens(contents)) is not None:
            yield _figure("reward against tokens, a point for each task", drawn)


def interval_bar(value: float | None, interval: Interval | None, low: float, high: float) -> Markup:
    """A score with its interval on the range of rewards."""
    at = _scale(low, high, 4, 156)
    parts = [element("line", x1=4, x2=156, y1=9, y2=9, class_="axis")]
    if interval is not None:
        ends = [at(min(max(end, low), high)) for end in (interval.low, interval.high)]
        parts.append(
            element("rect", x=_n(ends[0]), y=6, width=_n(max(ends[1] - ends[0], 1)), height=6, class_="whisker")
        )
    if value is not None:
        parts.append(element("circle", cx=_n(at(value)), cy=9, r=4, class_="dot"))
    return element("svg", parts, viewBox="0 0 160 18", width=160, height=18, class_="bar", aria_hidden="true")


def shares_bar(counts: Sequence[tuple[str, int]], width: int = 160) -> Markup:
    """Counts as parts of a bar; the names are classes."""
    total = sum(count for _, count in counts) or 1
    parts, at = [], 0.0
    for name, count in counts:
        size = width * count / total
        if count:
            parts.append(element("rect", x=_n(at), y=2, width=_n(max(size - 1, 0.5)), height=10, class_=f"k-{name}"))
        at += size
    return element("svg", parts, viewBox=f"0 0 {width} 14", width=width, height=14, class_="bar", aria_hidden="true")


def length_bar(value: float, most: float, width: int = 110) -> Markup:
    """A number as a length."""
    size = width * value / most if most > 0 else 0.0
    bar = element("rect", x=0, y=2, width=_n(max(size, 1)), height=10, class_="length")
    return element("svg", bar, viewBox=f"0 0 {width} 14", width=width, height=14, class_="bar", aria_hidden="true")


def _pass_at_k_caption(lines: Sequence[ProfileLine]) -> str:
    """With what it is over where that is the same for all lines, or there is one."""
    text = "pass@k with its 95 % interval, over the tasks with at least k scored repeats"
    counts = [[(one.k, one.estimate.tasks) for one in line.pass_at if one.estimate.value is not None] for line in lines]
    if any(one != counts[0] for one in counts[1:]):
        return text
    first, last = counts[0][0], counts[0][-1]
    return f"{text}: {first[1]:,}" + (
        f" at k = {first[0]}, {last[1]:,} at k = {last[0]}" if first[1] != last[1] else ""
    )


def _pass_at_k(lines: Sequence[ProfileLine]) -> Markup:
    most = max(one.k for line in lines for one in line.pass_at if one.estimate.value is not None)
    axes = _axes(1, most, 0, 1, "k", _ticks(1, most))
    drawn = []
    for series, line in enumerate(lines):
        shown = [one for one in line.pass_at if one.estimate.value is not None]
        banded = [(one.k, one.estimate.interval) for one in shown if one.estimate.interval is not None]
        if len(banded) > 1:
            around = [(k, found.high) for k, found in banded] + [(k, found.low) for k, found in reversed(banded)]
            drawn.append(element("polygon", points=_points(around, axes), class_=f"band {_series(series)}"))
        drawn.append(
            element(
                "polyline",
                points=_points([(one.k, one.estimate.value) for one in shown], axes),
                class_=f"curve {_series(series)}",
            )
        )
    return joined(axes.frame, drawn)


def _pass_rates(contents: Contents) -> Markup:
    rates = [np.sort(found["passed"].to_numpy() / found["scored"].to_numpy()) for found in _tasks(contents)]
    most = max((len(one) for one in rates), default=1)
    axes = _axes(0, most, 0, 1, "tasks", _ticks(0, most))
    drawn = []
    for series, values in enumerate(rates):
        corners: list[tuple[float, float]] = []
        for at, value in enumerate(values.tolist()):
            if not corners or corners[-1][1] != value:
                corners.append((at, value))
            if at + 1 == len(values) or values[at + 1] != value:
                corners.append((at + 1, value))
        if corners:
            drawn.append(element("polyline", points=_points(corners, axes), class_=f"curve {_series(series)}"))
    return joined(axes.frame, drawn)


def _reward_tokens(contents: Contents) -> Markup | None:
    clouds = []
    for found in _tasks(contents):
        tokens = pc.add(found["prompt_tokens"], found["completion_tokens"])
        known = pc.is_valid(tokens)
        clouds.append((tokens.filter(known).to_numpy(), found["mean"].filter(known).to_numpy()))
    if not any(len(tokens) for tokens, _ in clouds):
        return None
    most = float(max(tokens.max() for tokens, _ in clouds if len(tokens)))
    rewards = [(float(r.min()), float(r.max())) for _, r in clouds if len(r)]
    low, high = min(0.0, *(r[0] for r in rewards)), max(1.0, *(r[1] for r in rewards))
    axes = _axes(0, most, low, high, "tokens of a rollout", _ticks(0, most))
    drawn = []
    for series, (tokens, reward) in enumerate(clouds):
        step = -(-len(tokens) // MOST_POINTS) or 1
        drawn += [
            element("circle", cx=_n(axes.x(x)), cy=_n(axes.y(y)), r=2.5, class_=f"point {_series(series)}")
            for x, y in zip(tokens[::step].tolist(), reward[::step].tolist(), strict=True)
        ]
    return joined(axes.frame, drawn)


def _tasks(contents: Contents) -> Iterator[pa.Table]:
    """For each line of the profile its tasks that have a scored rollout."""
    for line in contents.profile.lines:
        mine = (pc.field("environment") == line.environment) & (pc.field("agent") == line.agent)
        yield contents.tasks.filter(mine & (pc.field("scored") > 0))


def _axes(x0: float, x1: float, y0: float, y1: float, label: str, ticks: Sequence[float]) -> Axes:
    x, y = _scale(x0, x1, LEFT, WIDTH - RIGHT), _scale(y0, y1, HEIGHT - BOTTOM, TOP)
    parts = []
    for value in (y0, (y0 + y1) / 2, y1):
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=_n(y(value)), y2=_n(y(value)), class_="grid"))
        parts.append(element("text", f"{value:g}", x=LEFT - 6, y=_n(y(value) + 3.5), text_anchor="end"))
    parts += [
        element("text", _short(value), x=_n(x(value)), y=HEIGHT - BOTTOM + 15, text_anchor="middle") for value in ticks
    ]
    parts.append(element("text", label, x=WIDTH - RIGHT, y=HEIGHT - 4, text_anchor="end", class_="label"))
    return Axes(x, y, joined(parts))


def _figure(caption: str, drawn: Markup) -> Markup:
    svg = element("svg", drawn, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=caption, class_="plot")
    return element("figure", svg, element("figcaption", caption))


def _ticks(low: float, high: float) -> list[float]:
    """A few round values; the ends where these are whole and near."""
    if high <= low:
        return [low]
    step = 10.0 ** np.floor(np.log10((high - low) / 2))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 5)
    step = max(step, 1.0)
    return sorted(
        {
            low,
            *(
                float(value)
                for value in np.arange(np.ceil(low / step) * step, high + step / 1e6, step)
                if value - low > step / 2
            ),
        }
    )


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    span = high - low or 1.0
    return lambda value: start + (end - start) * (value - low) / span


def _points(values: Sequence[tuple[float, float | None]], axes: Axes) -> str:
    return " ".join(f"{_n(axes.x(x))},{_n(axes.y(y))}" for x, y in values if y is not None)


def _series(number: int) -> str:
    return f"s{min(number, SERIES - 1)}"


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


def _n(value: float) -> str:
    return f"{value:.1f}"
