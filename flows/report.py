"""Report: one HTML page of a run, with its scorecard, findings, diagnosis and every trajectory. No model is called."""

from pathlib import Path

from tasks import flow
from tasks.report import write_report_page


@flow(name="report", flow_run_name="report {run_id}")
async def report(run_id: str = "latest", path: str | None = None, store: str | None = None) -> Path:
    """Write the page, by default among the run's own reports; returns where it lies."""
    written: Path = await write_report_page(run_id, path, store)
    return written
