"""Reverify: score the rollouts of a run again, under other verifier parameters or changed verifier code. No model is called."""

from typing import Any

from gymflow.contracts.report import Scorecard
from tasks import flow
from tasks.aggregate import aggregate
from tasks.rescore import rescore_run


@flow(name="reverify", flow_run_name="reverify {run_id}")
async def reverify(run_id: str, parameters: dict[str, Any] | None = None, store: str | None = None) -> Scorecard:
    """Write a second, complete verdict set of the run and report it. With an unchanged verifier everything is reused.

    `parameters` are verifier parameters that differ from the run's, such as {"mode": "lenient"}.
    """
    await rescore_run(run_id, parameters or {}, store)
    return await aggregate(run_id, store)
