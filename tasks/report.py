"""Report: a run as one HTML file."""

from pathlib import Path

from gymflow.analysis.page import write_page
from gymflow.analysis.sheets import Sheet
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="report {run_id}")
async def write_report_page(run_id: str, path: str | None, store: str | None) -> Path:
    """Write the page of a run and say where it lies."""
    place = Store(store_root(store))
    written = await write_page(place, run_id, Path(path) if path else None)
    sheet = Sheet("report", ("file", "size"), [(str(written), f"{written.stat().st_size / 1e6:.1f} MB")])
    await publish(f"report-{place.run(run_id).document.name}", [sheet])
    return written
