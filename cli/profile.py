"""`gym eval profile`: the profile of runs, printed."""

import asyncio

from cli.choosing import existing_store, verdict_set
from cli.recording import recording
from cli.sheets import put_sheets
from cli.terminal import print_json, results
from gymflow.analysis.sheets import profile_sheets
from gymflow.contracts.profile import Profile


def profile_runs(
    runs: list[str],
    *,
    by: list[str],
    k: list[int],
    verdicts: str | None,
    plots: bool,
    store: str | None,
    inline: bool,
    json: bool,
) -> None:
    """Profile each run; tables or a JSON list on stdout."""
    place = existing_store(store)
    readers = [place.run(run) for run in runs]
    chosen = [verdict_set(reader, verdicts) for reader in readers]
    reports: list[Profile] = []
    with recording(inline):
        from flows.profile import profile

        for reader, one in zip(readers, chosen, strict=True):
            reports.append(asyncio.run(profile(reader.run_id, one, by, k, plots, place.address)))
    if json:
        print_json([report.model_dump(mode="json") for report in reports])
        return
    console = results()
    for report in reports:
        put_sheets(console, profile_sheets(report))
        folder = place.layout.run(report.run_id).reports
        console.print(f"\nreports   {folder}/profile-{report.verdict_set or 'none'}.*", soft_wrap=True)
