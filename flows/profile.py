"""Profile: quality with its error, how it divides, and what it cost, over the stored rollouts of a run. No model is called."""

from gymflow.contracts.profile import Profile
from tasks import flow
from tasks.profile import make_profile


@flow(name="profile", flow_run_name="profile {run_id}")
async def profile(
    run_id: str = "latest",
    verdict_set: str | None = None,
    by: list[str] | None = None,
    k: list[int] | None = None,
    plots: bool = False,
    store: str | None = None,
) -> Profile:
    """Profile a run in a verdict set (default: the current one), cut into slices `by` tag, cluster, split or a field of the tasks, at
    further numbers of samples `k`."""
    report: Profile = await make_profile(run_id, verdict_set, by or [], k or [], plots, store)
    return report
