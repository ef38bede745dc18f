"""Merge: runs of one configuration, such as the shards of a plan, become one run."""

from gymflow.analysis.sheets import merge_sheets
from gymflow.contracts.merge import MergeReport
from gymflow.paths import store_root
from gymflow.store import Store
from gymflow.store.merge import merge_runs
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="merge into {into}")
async def merge(runs: list[str], into: str, store: str | None) -> MergeReport:
    """Write the merged run and show what became of its sources."""
    report = merge_runs(Store(store_root(store)), runs, into)
    await publish(f"merge-{into}", merge_sheets(report))
    return report
