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

from gymflow.runtime.active import ActiveRun

REFRESH_S = 0.25
QUIET_S = 15.0


@contextlib.asynccontextmanager
async def watching(run: ActiveRun) -> AsyncIterator[None]:
    """Show the run's progress for as long as the block lasts."""
    console = Console(stderr=True)
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
    while True:
        await asyncio.sleep(QUIET_S)
        print(summary(run), file=sys.stderr, flush=True)


def render(run: ActiveRun) -> Group:
    """Done of total, running, reward so far with its interval, tokens/s, failures by kind, time left."""
    progress = run.progress
    finished = progress.already + progress.done
    head = Table.grid(padding=(0, 2))
    head.add_row(
        Text(run.document.name, style="bold"),
        ProgressBar(total=max(progress.planned, 1), completed=finished, width=30),
        f"{finished}/{progress.planned}",
        f"{run.pool.running} running",
        f"{progress.tokens_per_s():,.0f} tok/s",
        f"left {_duration(progress.remaining_s())}",
    )
    lines: list[Table | Text] = [head]
    for name in progress.rewards:
        if reward := progress.reward(name):
            lines.append(Text(f"  {name}: reward {_interval(*reward)}"))
    for counts, style in ((progress.failures, "red"), (progress.unverified, "yellow")):
        if counts:
            lines.append(Text("  " + ", ".join(f"{count} {kind}" for kind, count in counts.most_common()), style=style))
    if progress.paused:
        lines.append(Text(f"  paused: {progress.paused}", style="yellow"))
    return Group(*lines)


def summary(run: ActiveRun) -> str:
    """The same in one line."""
    progress = run.progress
    rewards = [f"{name} {_interval(*reward)}" for name in progress.rewards if (reward := progress.reward(name))]
    failures = [f"{count} {kind}" for kind, count in (progress.failures + progress.unverified).most_common()]
    parts = [
        time.strftime("%H:%M:%S"),
        f"{progress.already + progress.done}/{progress.planned} rollouts",
        f"{run.pool.running} running",
        *rewards,
        *failures,
        f"left {_duration(progress.remaining_s())}",
    ]
    if progress.paused:
        parts.append(f"paused: {progress.paused}")
    return "  ".join(parts)


def _interval(mean: float, half: float) -> str:
    return f"{mean:.3f}" if math.isinf(half) else f"{mean:.3f} ± {half:.3f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
