"""Diagnose: why rollouts of a run did not pass, from the store alone. No model is called, unless one is named that reads rollouts."""

from gymflow.contracts.diagnosis import Diagnosis
from gymflow.contracts.model import ModelSpec
from tasks import flow
from tasks.diagnose import diagnose_run


@flow(name="diagnose", flow_run_name="diagnose {run_id}")
async def diagnose(
    run_id: str = "latest", against: str | None = None, store: str | None = None, reader: ModelSpec | None = None
) -> Diagnosis:
    """Buckets, funnel, root causes with evidence, interventions by what they could gain; with `against` an earlier run, what
    explains the difference; with `reader` what a model says that reads some of the rollouts, as far as the store bears it out."""
    report: Diagnosis = await diagnose_run(run_id, against, store, reader)
    return report
