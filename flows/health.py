"""Health: what the evidence of a run says about itself, and a gate that a deployment can fail on."""

from gymflow.analysis.health import Thresholds, hold_gate
from gymflow.contracts.finding import Severity
from gymflow.contracts.health import HealthCheck
from tasks import flow
from tasks.check_health import check_earlier, check_health


@flow(name="health", flow_run_name="health {run_id}")
async def health(
    run_id: str = "latest",
    against: str | None = None,
    fail_on: Severity | None = None,
    thresholds: Thresholds | None = None,
    store: str | None = None,
) -> HealthCheck:
    """Run all checks over a run, and over an earlier one (`against`) with which it is compared and in which nothing is written. Raises
    GateFailed where there is a finding of severity `fail_on` or a graver one (with `against`: where more of the run is affected than of
    the other), after the report is shown, and stored if the thresholds are the shipped ones."""
    held = HealthCheck(
        report=await check_health(run_id, store, thresholds),
        before=await check_earlier(against, store, thresholds) if against else None,
    )
    if fail_on is not None:
        hold_gate(held, fail_on)
    return held
