"""Playing the evaluate flow from a terminal: where it is recorded, how it is watched, how it is interrupted."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import typer

from cli.live import watching
from cli.options import RunOptions, resumed_config, run_config
from cli.recording import recording
from cli.scorecard import print_scorecards
from cli.terminal import plain
from gymflow.config import expand_vary
from gymflow.contracts.report import Scorecard
from gymflow.contracts.run import RunConfig
from gymflow.errors import InputError, RunIncomplete
from gymflow.metrics.scorecard import scorecard
from gymflow.paths import store_root
from gymflow.runtime.active import ActiveRun, watcher
from gymflow.store import Store
from gymflow.user_roots import VARIABLE

EXIT_INCOMPLETE, EXIT_INTERRUPTED = 3, 130


def run_evaluations(
    options: RunOptions,
    file: Path | None,
    *,
    resume: str | None,
    allow_drift: list[str],
    decision: str | None,
    store: str | None,
    search_dirs: list[Path],
    inline: bool,
    health: bool,
    diagnosis: bool,
    json: bool,
) -> None:
    """One run, or one for each value of `--vary`; then the scorecards. Exits with 3 or 130 where that is how it ended."""
    add_search_dirs(search_dirs)
    root = store_root(store)
    if resume is None:
        runs: list[tuple[RunConfig, str | None]] = [(one, None) for one in expand_vary(run_config(options, file))]
    else:
        if file is not None:
            raise InputError(
                "--config does not go with --resume: a run keeps its configuration; --set changes a field of it"
            )
        document = Store(root).run(Store(root).resolve_run_id(resume)).document
        runs = [(resumed_config(document.config, options), document.run_id)]
    further = {"accept_drift": allow_drift, "health": health, "diagnosis": diagnosis, "decision": decision}
    cards: list[Scorecard] = []
    complete, interrupted = True, False
    for config, run_id in runs:
        card, ended, interrupted = _evaluate(config, run_id, root, inline, further)
        cards.append(card)
        complete = complete and ended
        if interrupted:
            break
    print_scorecards(cards, json=json, health=health, diagnosis=diagnosis)
    if interrupted or not complete:
        sys.exit(EXIT_INTERRUPTED if interrupted else EXIT_INCOMPLETE)


def add_search_dirs(folders: list[Path]) -> None:
    """Make plugin roots known to this process and those it starts."""
    if folders:
        known = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
        os.environ[VARIABLE] = os.pathsep.join([str(folder.resolve()) for folder in folders] + known)


def _evaluate(
    config: RunConfig, run_id: str | None, store: str, inline: bool, further: dict[str, Any]
) -> tuple[Scorecard, bool, bool]:
    """The scorecard, whether the run is complete, and whether it was interrupted. `further`: parameters of the flow."""
    with recording(inline):
        from flows.evaluate import evaluate
        from gymflow.sandboxes import close_providers
        from tasks.plan import new_run_id

        run_id = run_id or new_run_id(config)
        interrupted = asyncio.Event()

        async def play() -> Scorecard:
            watcher.set(lambda run: _watched(run, interrupted))
            try:
                card: Scorecard = await evaluate(config, run_id, store, **further)
            finally:
                await close_providers()
            return card

        try:
            return asyncio.run(play()), True, interrupted.is_set()
        except RunIncomplete as error:
            typer.echo(f"gym: {plain(str(error))}", err=True)
    return scorecard(Store(store), run_id), False, interrupted.is_set()


@contextlib.asynccontextmanager
async def _watched(run: ActiveRun, interrupted: asyncio.Event) -> AsyncIterator[None]:
    """Show the run. The first Ctrl-C drains it, a second one leaves at once; either way it can be resumed."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if interrupted.is_set():
            os._exit(EXIT_INTERRUPTED)  # what was acknowledged is durable
        interrupted.set()
        typer.echo("gym: finishing what is running (Ctrl-C again to leave at once)", err=True)
        stopping.append(loop.create_task(run.stop()))

    stopping: list[asyncio.Task[None]] = []
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        async with watching(run):
            yield
    finally:
        await asyncio.gather(*stopping)
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
