"""`gym eval aggregate`: runs put together, and the scorecard of the whole."""

import asyncio

from cli.choosing import existing_store
from cli.recording import recording
from cli.scorecard import put_scorecard
from cli.sheets import put_sheets
from cli.terminal import print_json, results
from gymflow.analysis.sheets import merge_sheets
from gymflow.contracts.merge import MergeReport
from gymflow.errors import RunIncomplete
from gymflow.metrics.scorecard import scorecard


def aggregate_runs(runs: list[str], *, into: str, store: str | None, inline: bool, json: bool) -> None:
    """Merge and print; raises RunIncomplete after it where rollouts are missing or failed."""
    place = existing_store(store)
    incomplete: RunIncomplete | None = None
    with recording(inline):
        from flows.aggregate import aggregate

        try:
            asyncio.run(aggregate(runs, into, place.address))
        except RunIncomplete as error:
            incomplete = error
    report = MergeReport.model_validate_json((place.layout.run(into).reports / "merge.json").read_bytes())
    card = scorecard(place, into)
    if json:
        print_json({"merge": report.model_dump(mode="json"), "scorecard": card.model_dump(mode="json")})
    else:
        console = results()
        put_sheets(console, merge_sheets(report))
        console.print()
        put_scorecard(console, card)
    if incomplete is not None:
        raise incomplete
