"""What is shown while a run works: a live display on a terminal, quiet lines in a pipe. Always on stderr."""

import asyncio
import contextlib
import math
import sys
import time
from collections.abc import AsyncIterator

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.terminal import one_line
from gymflow.analysis.sheets import number
from gymflow.runtime.active import ActiveRun

REFRESH_S = 0.25
QUIET_S = 15.0
BAR = 24
"""Cells of the bar: what stands beside it fits 80 columns."""


@contextlib.asynccontextmanager
async def watching(run: ActiveRun) -> AsyncIterator[None]:
    """Show the run's progress for as long as the block lasts."""
    console = Console(stderr=True)
    progress = run.progress
    held = f", {progress.already} of them durable already" if progress.already else ""
    print(f"gym: run {run.run_id}: {progress.planned} rollouts{held}", file=sys.stderr, flush=True)
    watcher = asyncio.create_task(_live(run, console) if console.is_terminal else _lines(run))
    try:
        yield
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher


async def _live(run: ActiveRun, console: Console) -> None:
    with Live(render(run), console=console, auto_refresh=False, transient=True) as live:
        try:
            while True:
                await asyncio.sleep(REFRESH_S)
                live.update(render(run), refresh=True)
        finally:
            live.update(render(run), refresh=True)


async def _lines(run: ActiveRun) -> None:
    """A line now and then, and one whenever the run begins or ceases to wait for an endpoint."""
    waiting, due = _waiting(run), time.monotonic() + QUIET_S
    while True:
        await asyncio.sleep(REFRESH_S)
        if _waiting(run) != waiting or time.monotonic() >= due:
            print(summary(run), file=sys.stderr, flush=True)
            waiting, due = _waiting(run), time.monotonic() + QUIET_S


def render(run: ActiveRun) -> Group:
    """Done of total, running, reward so far with its interval, tokens/s, failures by kind, time left."""
    progress = run.progress
    finished = progress.already + progress.done
    head = Table.grid(padding=(0, 2))
    for _ in range(6):
        head.add_column(no_wrap=True)
    head.add_row(
        ProgressBar(total=max(progress.planned, 1), completed=finished, width=BAR),
        f"{finished}/{progress.planned}",
        f"{run.pool.running} running",
        f"{progress.tokens_per_s():,.0f} tok/s",
        f"{_duration(progress.elapsed_s)}",
        f"left {_left(run)}",
    )
    lines: list[Table | Text] = [head]
    lines += [Text(f"  {reward}", no_wrap=True) for reward in _rewards(run)]
    for counts, style in ((progress.failures, "red"), (progress.unverified, "yellow")):
        if counts:
            lines.append(Text("  " + ", ".join(f"{count} {kind}" for kind, count in counts.most_common()), style=style))
    if waiting := _waiting(run):
        lines.append(Text(f"  paused: {waiting}", style="yellow"))
    return Group(*lines)


def summary(run: ActiveRun) -> str:
    """The same in one line."""
    progress = run.progress
    failures = [f"{count} {kind}" for kind, count in (progress.failures + progress.unverified).most_common()]
    parts = [
        time.strftime("%H:%M:%S"),
        f"{progress.already + progress.done}/{progress.planned} rollouts",
        f"{run.pool.running} running",
        *_rewards(run),
        *failures,
        f"{progress.tokens_per_s():,.0f} tok/s",
        f"left {_left(run)}",
    ]
    if waiting := _waiting(run):
        parts.append(f"paused: {waiting}")
    return "  ".join(parts)


def _rewards(run: ActiveRun) -> list[str]:
    rewards = ((name, means.estimate()) for name, means in run.progress.rewards.items())
    return [f"{one_line(name)}: reward {_interval(*reward)}" for name, reward in rewards if reward]


def _waiting(run: ActiveRun) -> str:
    return "; ".join(f"model {name}: {one_line(why)}" for name, why in run.player.gateway.waiting_for.items())


def _left(run: ActiveRun) -> str:
    remaining = None if _waiting(run) else run.progress.remaining_s()
    return "until these end" if run.stopping else "?" if remaining is None else _duration(remaining)


def _interval(mean: float, half: float) -> str:
    return number(mean) if math.isinf(half) else f"{number(mean)} ± {number(half)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
