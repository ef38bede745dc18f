"""Profile: what the store says of a run, in tables, files and plots."""

from gymflow.analysis.profiling import profile_run
from gymflow.analysis.sheets import profile_sheets
from gymflow.contracts.profile import Profile
from gymflow.metrics.quality import Options
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="profile {run_id}")
async def make_profile(
    run_id: str, verdict_set: str | None, by: list[str], k: list[int], plots: bool, store: str | None
) -> Profile:
    """Make, store and show the profile of a run in a verdict set (None: the current one)."""
    place = Store(store_root(store))
    report, drawn = profile_run(place, place.resolve_run_id(run_id), verdict_set, Options(by=by, k=k), plots=plots)
    await publish(f"profile-{report.name}", profile_sheets(report), drawn)
    return report
