"""Aggregate: the scorecard of what the store holds of a run."""

from gymflow.analysis.sheets import scorecard_sheets
from gymflow.contracts.report import Scorecard
from gymflow.metrics.scorecard import scorecard
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="aggregate {run_id}")
async def aggregate(run_id: str, store: str | None) -> Scorecard:
    """The scorecard, also of a run that is not complete."""
    card = scorecard(Store(store_root(store)), run_id)
    await publish(f"scorecard-{card.name}", scorecard_sheets(card), lead=f"store {card.store}")
    return card
