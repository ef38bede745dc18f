"""`gym eval reverify`: a second verdict set from the terminal, against the one before."""

import asyncio
from pathlib import Path
from typing import Any

from cli.choosing import existing_store
from cli.recording import recording
from cli.running import add_search_dirs
from cli.sheets import put_sheets
from cli.terminal import plain, print_json, results
from gymflow.analysis.reverify_sheets import reverify_sheets
from gymflow.config import parse_assignments
from gymflow.contracts.reverification import Reverification
from gymflow.errors import InputError

VERIFIER, JUDGE = "verifier.", "judge."


def reverify_run(
    run: str,
    assignments: list[str],
    *,
    verifier: str | None,
    failed_only: bool,
    labels: Path | None,
    store: str | None,
    search_dirs: list[Path],
    inline: bool,
    json: bool,
) -> None:
    """Rescore and print the report."""
    add_search_dirs(search_dirs)
    parameters, judge = _changes(assignments)
    place = existing_store(store)
    run_id = place.resolve_run_id(run)
    if labels is not None and not labels.is_file():
        raise InputError(f"--labels {labels}: there is no such file")
    with recording(inline):
        from flows.reverify import reverify
        from gymflow.sandboxes import close_providers

        async def score_again() -> Reverification:
            try:
                report: Reverification = await reverify(
                    run_id,
                    parameters,
                    place.address,
                    verifier=verifier,
                    judge=judge,
                    failed_only=failed_only,
                    labels=str(labels.absolute()) if labels else None,
                )
            finally:
                await close_providers()
            return report

        report = asyncio.run(score_again())
    if json:
        print_json(report.model_dump(mode="json"))
        return
    print_reverification(report)


def print_reverification(report: Reverification) -> None:
    """Tables, then the difference of the code where it changed."""
    console = results()
    put_sheets(console, reverify_sheets(report))
    for change in report.changes:
        if change.code_diff:
            console.print(f"\n{change.environment}: the verifier's code", style="bold", soft_wrap=True)
            console.print(plain(change.code_diff), soft_wrap=True)
        elif change.code_changed and change.verifier[0] == change.verifier[1]:
            console.print(f"\n{change.environment}: the verifier's earlier code was not kept", soft_wrap=True)


def _changes(assignments: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the verifier, and fields of the judge model."""
    parameters: dict[str, Any] = {}
    judge: dict[str, Any] = {}
    for key, value in parse_assignments(assignments).items():
        if key.startswith(VERIFIER):
            parameters[key.removeprefix(VERIFIER)] = value
        elif key.startswith(JUDGE):
            judge[key.removeprefix(JUDGE)] = value
        else:
            raise InputError(f"--set {key}: only {VERIFIER}PARAM and {JUDGE}FIELD can change without sampling again")
    return parameters, judge
