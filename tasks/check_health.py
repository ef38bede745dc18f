"""Check health: what the evidence of a run says about itself."""

from gymflow.analysis.health import Thresholds, examine
from gymflow.contracts.health import HealthReport
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step


@step(task_run_name="check health {run_id}")
async def check_health(run_id: str, store: str | None, thresholds: Thresholds | None = None) -> HealthReport:
    """Run all checks and write `reports/health.json`; works on a run that is not complete, too."""
    return examine(Store(store_root(store)), run_id, thresholds)
