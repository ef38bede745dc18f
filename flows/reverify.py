"""Reverify: score the rollouts of a run again, under other verifier parameters or changed verifier code. Nothing is sampled."""

from typing import Any

from gymflow.contracts.reverification import Reverification
from gymflow.runtime.rejudging import Change
from tasks import flow
from tasks.rescore import rescore_run


@flow(name="reverify", flow_run_name="reverify {run_id}")
async def reverify(
    run_id: str,
    parameters: dict[str, Any] | None = None,
    store: str | None = None,
    verifier: str | None = None,
    judge: dict[str, Any] | None = None,
    failed_only: bool = False,
    labels: str | None = None,
) -> Reverification:
    """Write a second, complete verdict set of the run and report it against the one before. With an unchanged verifier everything
    is reused.

    `parameters` are verifier parameters that differ from the run's, such as {"mode": "lenient"}; `verifier` is another verifier;
    `judge` has fields of the judge model that differ. With `failed_only` only rollouts without a reward are judged again. `labels`
    is a file with people's verdicts to compare with.
    """
    change = Change(parameters or {}, verifier, judge or {}, failed_only)
    report: Reverification = await rescore_run(run_id, change, labels, store)
    return report
