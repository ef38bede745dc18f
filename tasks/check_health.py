"""Check health: what the evidence of a run says about itself."""

from gymflow.analysis.health import Thresholds, examine
from gymflow.analysis.health.sheets import health_line, health_sheets
from gymflow.contracts.health import HealthReport
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="check health {run_id}")
async def check_health(run_id: str, store: str | None, thresholds: Thresholds | None = None) -> HealthReport:
    """Run all checks and write `reports/health.json`; works on a run that is not complete, too."""
    place = Store(store_root(store))
    report = examine(place, run_id, thresholds)
    await publish(f"health-{place.run(report.run_id).document.name}", health_sheets(report), lead=health_line(report))
    return report
