"""Check health: what the evidence of a run says about itself."""

from gymflow.analysis.health import Thresholds, current_report, examine
from gymflow.analysis.health.sheets import health_line, health_sheets
from gymflow.contracts.health import HealthReport
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="check health {run_id}")
async def check_health(run_id: str, store: str | None, thresholds: Thresholds | None = None) -> HealthReport:
    """Run all checks and write `reports/health.json`, unless the thresholds are not the shipped ones; works on a run that is not
    complete, too."""
    place = Store(store_root(store))
    report = examine(place, run_id, thresholds)
    await publish(f"health-{place.run(report.run_id).document.name}", health_sheets(report), lead=health_line(report))
    return report


@step(task_run_name="check health {run_id}, as it was")
async def check_earlier(run_id: str, store: str | None, thresholds: Thresholds | None = None) -> HealthReport:
    """The same of a run that another is compared with; nothing is written."""
    place = Store(store_root(store))
    if thresholds is not None:
        return examine(place, run_id, thresholds, keep=False)
    return current_report(place, place.run(run_id), keep=False)
