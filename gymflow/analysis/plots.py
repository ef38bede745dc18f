"""Plots of a profile as PNG files. Needs matplotlib, which is imported when a plot is drawn and not before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gymflow.contracts.profile import Profile
from gymflow.errors import InputError
from gymflow.metrics.magnitudes import scale_of

SIZE, DPI = (7.0, 4.2), 120
MOST_POINTS = 20_000


def plot_profile(profile: Profile, tasks: pa.Table, folder: Path) -> list[Path]:
    """Draw the pass@k curves, the pass rates of the tasks, and reward against tokens; returns the files.

    `tasks` is the table of `profile_with_tasks`. Raises InputError where matplotlib is not installed.
    """
    require_matplotlib()
    stem = f"profile-{profile.verdict_set or 'none'}"
    drawings: dict[str, Callable[[Any], None]] = {
        "pass-at-k": lambda axes: _pass_at_k(axes, profile),
        "pass-rates": lambda axes: _pass_rates(axes, profile, tasks),
        "reward-tokens": lambda axes: _reward_tokens(axes, profile, tasks),
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [_draw(folder / f"{stem}-{name}.png", draw) for name, draw in drawings.items()]


def require_matplotlib() -> None:
    """Raises InputError where plots cannot be drawn."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("--plots needs matplotlib: pip install 'gymflow[plots]'") from None
    matplotlib.use("agg")


def _draw(path: Path, draw: Callable[[Any], None]) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=SIZE, layout="constrained")
    try:
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=DPI)
    finally:
        pyplot.close(figure)
    return path


def _pass_at_k(axes: Any, profile: Profile) -> None:
    for line in profile.lines:
        shown = [one for one in line.pass_at if one.estimate.value is not None]
        ks = [one.k for one in shown]
        [drawn] = axes.plot(ks, [one.estimate.value for one in shown], marker="o", label=_label(profile, line))
        bars = [one for one in shown if one.estimate.interval is not None]
        intervals = [one.estimate.interval for one in bars if one.estimate.interval is not None]
        axes.fill_between(
            [one.k for one in bars],
            [one.low for one in intervals],
            [one.high for one in intervals],
            alpha=0.2,
            color=drawn.get_color(),
        )
        axes.set_xticks(ks)
    axes.set(xlabel="k", ylabel=f"pass@k, {100 * profile.confidence:g} % interval", ylim=(0, 1.02))
    axes.set_title(profile.name)


def _pass_rates(axes: Any, profile: Profile, tasks: pa.Table) -> None:
    for line in profile.lines:
        chosen = _tasks_of(tasks, line)
        rates = np.sort(chosen["passed"].to_numpy() / chosen["scored"].to_numpy())
        axes.plot(np.arange(1, len(rates) + 1), rates, drawstyle="steps-mid", label=_label(profile, line))
    axes.set(xlabel="tasks, the hardest first", ylabel="pass rate", ylim=(-0.02, 1.02))
    axes.set_title(profile.name)


def _reward_tokens(axes: Any, profile: Profile, tasks: pa.Table) -> None:
    scale = scale_of(tasks["mean"].drop_null().to_numpy())  # an axis cannot span what a number cannot hold
    for line in profile.lines:
        chosen = _tasks_of(tasks, line)
        tokens = pc.add(chosen["prompt_tokens"], chosen["completion_tokens"])
        known = chosen.filter(pc.is_valid(tokens))
        x, y = tokens.drop_null().to_numpy(), known["mean"].to_numpy() / scale
        if len(x) > MOST_POINTS:
            some = np.random.default_rng(profile.seed).choice(len(x), MOST_POINTS, replace=False)
            x, y = x[some], y[some]
        axes.scatter(x, y, s=10, alpha=0.5, linewidths=0, label=_label(profile, line))
    axes.set(
        xlabel="tokens of a rollout, mean of the task",
        ylabel="reward, mean of the task" + (f", in {scale:.3g}" if scale != 1.0 else ""),
    )
    axes.set_title(profile.name)


def _tasks_of(tasks: pa.Table, line: Any) -> pa.Table:
    """The tasks of a line that have a scored rollout."""
    mine = (pc.field("environment") == line.environment) & (pc.field("agent") == line.agent)
    return tasks.filter(mine & (pc.field("scored") > 0))


def _label(profile: Profile, line: Any) -> str | None:
    return f"{line.environment}, {line.agent}" if len(profile.lines) > 1 else None
