"""`gym eval report`: a run as one HTML file."""

import asyncio
from pathlib import Path

from cli.choosing import existing_store
from cli.recording import recording
from cli.terminal import print_json, results


def report_run(run: str, *, output: Path | None, store: str | None, inline: bool, json: bool) -> None:
    """Write the page and print where it lies."""
    place = existing_store(store)
    run_id = place.resolve_run_id(run)
    with recording(inline):
        from flows.report import report

        written = asyncio.run(report(run_id, str(output.absolute()) if output else None, place.address))
    size = written.stat().st_size
    if json:
        print_json({"run_id": run_id, "path": str(written), "bytes": size})
    else:
        results().print(f"{written}  ({size / 1e6:.1f} MB)", soft_wrap=True)
