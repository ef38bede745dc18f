"""Diagnose: why rollouts did not pass, and what could be done."""

from gymflow.analysis.diagnose import Reader, diagnose
from gymflow.analysis.diagnose.sheets import diagnosis_sheets, headline
from gymflow.contracts.diagnosis import Diagnosis
from gymflow.contracts.model import ModelSpec
from gymflow.paths import store_root
from gymflow.store import Store
from gymflow.store.files import Files
from tasks import step
from tasks.artifacts import markdown, publish


@step(task_run_name="diagnose {run_id}")
async def diagnose_run(
    run_id: str, against: str | None, store: str | None, reader: ModelSpec | None = None
) -> Diagnosis:
    """Label what did not pass; the report lies with the run as `diagnosis.json` and `diagnosis.md`."""
    place = Store(store_root(store))
    diagnosis = await diagnose(place, run_id, against=against, by=Reader(reader) if reader else None)
    sheets = list(diagnosis_sheets(diagnosis))
    path = place.layout.run(diagnosis.run_id).reports / "diagnosis.md"
    Files().replace(path, markdown(sheets, headline(diagnosis)).encode())
    await publish(f"diagnosis-{place.run(run_id).document.name}", sheets, lead=headline(diagnosis))
    return diagnosis
