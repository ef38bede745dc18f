"""Rescore: a new verdict set over stored rollouts, and what it says that the set before did not."""

from gymflow.analysis.reverify_sheets import reverify_sheets
from gymflow.analysis.reverifying import reverification
from gymflow.contracts.reverification import Reverification
from gymflow.paths import store_root
from gymflow.registry import Registry
from gymflow.runtime.garbage import rare_collections
from gymflow.runtime.rejudging import Change
from gymflow.runtime.rescoring import rescore
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="rescore {run_id}")
async def rescore_run(run_id: str, change: Change, labels: str | None, store: str | None) -> Reverification:
    """Score every completed rollout that has no reward from this verifier yet, and report."""
    place = Store(store_root(store))
    with rare_collections():
        rescored = await rescore(place, place.resolve_run_id(run_id), change, Registry())
        report = reverification(place, rescored, labels)
    diffs = {
        f"{change.environment}: the verifier's code": change.code_diff for change in report.changes if change.code_diff
    }
    await publish(f"reverify-{report.name}", reverify_sheets(report), diffs=diffs)
    return report
