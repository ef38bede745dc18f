"""Aggregate: shards, sampled anywhere, as one run with one scorecard. No model is called, and no server is needed."""

from gymflow.contracts.report import Scorecard
from gymflow.errors import RunIncomplete
from tasks import flow
from tasks.aggregate import aggregate as score
from tasks.merge import merge


@flow(name="aggregate", flow_run_name="aggregate into {into}")
async def aggregate(runs: list[str], into: str, store: str | None = None) -> Scorecard:
    """Merge runs into run `into` and report it. Raises RunIncomplete when rollouts are missing or failed, after everything else
    was reported."""
    report = await merge(runs, into, store)
    card: Scorecard = await score(into, store)
    missing = []
    if report.missing_shards:
        missing.append(f"shards {', '.join(report.missing_shards)} are not among the runs: sample and merge them, too")
    if report.incomplete:
        missing.append(
            f"{report.incomplete} of {report.planned} rollouts are missing or failed: resume the runs that planned them and "
            f"merge again, or `gym eval run --resume {into}`"
        )
    if missing:
        raise RunIncomplete("; ".join(missing))
    return card
