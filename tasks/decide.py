"""Decide: the ranked list of a diagnosis, and the record of what was chosen from it."""

from gymflow.analysis.decide import decide, ranked
from gymflow.analysis.decide.sheets import choice_sheets, decision_sheets
from gymflow.contracts.decision import Decision
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="rank interventions {run_id}")
async def rank(run_id: str, store: str | None) -> Diagnosis:
    """What there is to choose from; diagnoses the run where that was not done since it changed last."""
    place = Store(store_root(store))
    diagnosis = await ranked(place, run_id)
    await publish(f"choices-{place.run(diagnosis.run_id).document.name}", choice_sheets(diagnosis))
    return diagnosis


@step(task_run_name="record decision {diagnosis.run_id}")
async def record_decision(
    diagnosis: Diagnosis, choice: str, decided_by: str, reason: str, store: str | None
) -> Decision:
    """Keep what was chosen, by whom and why."""
    place = Store(store_root(store))
    decision = decide(place, diagnosis, choice, decided_by=decided_by, reason=reason)
    await publish(f"decision-{place.run(decision.run_id).document.name}", decision_sheets(decision))
    return decision
