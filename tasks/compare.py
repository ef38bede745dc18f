"""Compare: candidates against a base, and the gates on them."""

from pathlib import Path

from gymflow.analysis.compare import Settings, compare, parse_gate, read_gates
from gymflow.analysis.comparison_sheets import comparison_sheets, headlines, warnings
from gymflow.contracts.comparison import Comparison
from gymflow.paths import store_root
from gymflow.store import Store
from tasks import step
from tasks.artifacts import publish


@step(task_run_name="compare {base}")
async def compare_runs(
    base: str,
    candidates: list[str],
    by: list[str],
    gates: list[str],
    gates_file: str | None,
    effect: float | None,
    verdict_set: str | None,
    store: str | None,
) -> Comparison:
    """Compare, store and show; whether the gates held is in the report."""
    place = Store(store_root(store))
    conditions = [*(read_gates(Path(gates_file)) if gates_file else []), *map(parse_gate, gates)]
    settings = Settings() if effect is None else Settings(effect=effect)
    report = compare(place, base, candidates, by=by, gates=conditions, settings=settings, verdict_set=verdict_set)
    lead = "\n".join([*headlines(report), *warnings(report)])
    await publish(f"comparison-{report.base_name}", comparison_sheets(report), lead=lead)
    return report
