"""`gym eval reverify`: a second verdict set from the terminal."""

import asyncio
from pathlib import Path

from cli.recording import recording
from cli.running import add_search_dirs
from cli.scorecard import print_scorecards
from gymflow.config import parse_assignments
from gymflow.errors import InputError
from gymflow.paths import store_root
from gymflow.store import Store

PREFIX = "verifier."


def reverify_run(
    run: str, assignments: list[str], *, store: str | None, search_dirs: list[Path], inline: bool, json: bool
) -> None:
    """Rescore and print the scorecard of the new set."""
    add_search_dirs(search_dirs)
    parameters = {}
    for key, value in parse_assignments(assignments).items():
        if not key.startswith(PREFIX):
            raise InputError(f"--set {key}: only {PREFIX}PARAM can change without sampling again")
        parameters[key.removeprefix(PREFIX)] = value
    root = store_root(store)
    run_id = Store(root).resolve_run_id(run)
    with recording(inline):
        from flows.reverify import reverify

        card = asyncio.run(reverify(run_id, parameters, root))
    print_scorecards([card], json=json)
