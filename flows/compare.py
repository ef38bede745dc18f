"""Compare: candidates against a base, and gates that a deployment can fail on. No model is called."""

from gymflow.contracts.comparison import Comparison
from gymflow.errors import GateFailed
from tasks import flow
from tasks.compare import compare_runs


@flow(name="compare", flow_run_name="compare {base}")
async def compare(
    base: str,
    candidates: list[str] | None = None,
    by: list[str] | None = None,
    gates: list[str] | None = None,
    gates_file: str | None = None,
    effect: float | None = None,
    verdict_set: str | None = None,
    store: str | None = None,
) -> Comparison:
    """Compare runs (`RUN` or `RUN:AGENT`) by task, with gates such as "score >= -0.01"; without candidates the agents of one run.

    Raises GateFailed when a gate does not hold, after the report is stored and shown.
    """
    report: Comparison = await compare_runs(
        base, candidates or [], by or [], gates or [], gates_file, effect, verdict_set, store
    )
    if failed := report.failed_gates:
        names = ", ".join(dict.fromkeys(gate.gate for gate in failed))
        raise GateFailed(f"{len(failed)} of {len(report.gates)} gates failed: {names}")
    return report
