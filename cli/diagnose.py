"""`gym eval diagnose`: why rollouts did not pass."""

import asyncio

from rich.console import Console

from cli.choosing import existing_store
from cli.recording import recording
from cli.sheets import put_sheets
from cli.terminal import one_line, print_json, results
from gymflow.analysis.diagnose.sheets import diagnosis_sheets, headline
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.contracts.model import ModelSpec


def diagnose_run(
    run: str, *, against: str | None, store: str | None, inline: bool, json: bool, reader: ModelSpec | None = None
) -> None:
    """Print the diagnosis. `reader`: a model that reads some of the rollouts."""
    place = existing_store(store)
    run_id = place.resolve_run_id(run)
    earlier = place.resolve_run_id(against) if against else None
    with recording(inline):
        from flows.diagnose import diagnose

        diagnosis: Diagnosis = asyncio.run(diagnose(run_id, earlier, place.address, reader))
    if json:
        print_json(diagnosis.model_dump(mode="json"))
    else:
        _put(results(), diagnosis, f"{place.root}/runs/{run_id}/reports")


def _put(console: Console, diagnosis: Diagnosis, folder: str) -> None:
    console.print(one_line(headline(diagnosis)), style="italic", soft_wrap=True)
    console.print()
    put_sheets(console, diagnosis_sheets(diagnosis))
    console.print(f"\nreports   {folder}/diagnosis.json, diagnosis.md", soft_wrap=True)
