"""`gym eval import` and `gym eval export`: other tools' rollouts, in and out."""

import asyncio
import shlex
from pathlib import Path

from cli.choosing import existing_store, verdict_set
from cli.running import add_search_dirs
from cli.terminal import one_line, print_json, results
from gymflow.config import parse_assignments
from gymflow.contracts.exchange import ExportReport, ImportReport
from gymflow.errors import InputError
from gymflow.interop.exchange import export_run, import_file
from gymflow.paths import store_root
from gymflow.registry import Registry
from gymflow.store import Store

PREFIX = "verifier."
CONFLICTS_SHOWN = 10


def import_rollouts(
    file: Path,
    format: str,
    *,
    inputs: Path | None,
    environment: str | None,
    verifier: str | None,
    assignments: list[str],
    run_id: str | None,
    name: str | None,
    store: str | None,
    search_dirs: list[Path],
    json: bool,
) -> None:
    """Make a run of a file and say what came of it."""
    add_search_dirs(search_dirs)
    parameters = {}
    for key, value in parse_assignments(assignments).items():
        if not key.startswith(PREFIX):
            raise InputError(f"--set {key}: only {PREFIX}PARAM can be set for rollouts that exist already")
        parameters[key.removeprefix(PREFIX)] = value
    report = asyncio.run(
        import_file(
            Store(store_root(store)),
            file,
            format,
            Registry(),
            inputs=inputs,
            environment=environment,
            verifier=verifier,
            parameters=parameters,
            run_id=run_id,
            name=name,
        )
    )
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        _print_import(report, store)


def export_rollouts(
    run: str, format: str, output: Path, *, verdicts: str | None, store: str | None, json: bool
) -> None:
    """Write a run's rollouts and say where."""
    place = existing_store(store)
    report = export_run(place, run, format, output, verdict_set=verdict_set(place.run(run), verdicts))
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        _print_export(report)


def _print_import(report: ImportReport, store: str | None) -> None:
    console = results()
    console.print(f"run {report.run_id}", style="bold", soft_wrap=True)
    console.print(
        f"{report.rollouts} rollouts of {report.tasks} tasks: {report.completed} completed, {report.failed} failed, "
        f"{report.scored} with a reward",
        soft_wrap=True,
    )
    for code, count in report.gaps.items():
        console.print(f"  {count} with gap {code}", soft_wrap=True)
    if report.repeated:
        console.print(f"  {report.repeated} stand in the file again, equal, and count once", soft_wrap=True)
    for conflict in report.conflicts[:CONFLICTS_SHOWN]:
        console.print(f"  {one_line(conflict)}", style="yellow", soft_wrap=True)
    if len(report.conflicts) > CONFLICTS_SHOWN:
        console.print(
            f"  and {len(report.conflicts) - CONFLICTS_SHOWN} more that differ; --json has all", style="yellow"
        )
    for note in report.notes:
        console.print(one_line(note), soft_wrap=True)
    where = f" --store {shlex.quote(store)}" if store else ""
    verifier = " --verifier NAME" if report.verifier == "recorded" else ""
    console.print(f"next\n  gym eval profile {report.run_id}{where}", soft_wrap=True)
    console.print(f"  gym eval reverify {report.run_id}{verifier}{where}", soft_wrap=True)


def _print_export(report: ExportReport) -> None:
    console = results()
    console.print(f"{report.rollouts} rollouts of run {report.run_id} as {report.format}", soft_wrap=True)
    for file in report.files:
        console.print(f"  {file}", soft_wrap=True)
    if report.without_reward:
        console.print(f"{report.without_reward} of them have no reward", soft_wrap=True)
    if report.missing:
        console.print(f"{report.missing} planned rollouts are missing and were not written", soft_wrap=True)
