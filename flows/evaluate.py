"""Evaluate: from a run configuration to a scorecard. Only the order of the steps lives here."""

from gymflow.contracts.report import Scorecard
from gymflow.contracts.run import RunConfig
from gymflow.errors import RunIncomplete
from gymflow.runtime.opening import opened
from tasks import flow
from tasks.aggregate import aggregate
from tasks.check_health import check_health
from tasks.diagnose import diagnose_run
from tasks.plan import new_run_id, plan_run
from tasks.run import run_chunks, verify
from tasks.validate import validate


def flow_run_name() -> str:
    """`evaluate mcqa+arithmetic`, as the run list of the UI shows it."""
    from prefect.runtime import flow_run

    config: RunConfig = flow_run.parameters["config"]
    return f"evaluate {config.title}"


@flow(name="evaluate", flow_run_name=flow_run_name)
async def evaluate(
    config: RunConfig,
    run_id: str | None = None,
    store: str | None = None,
    accept_drift: list[str] | None = None,
    health: bool = True,
    diagnosis: bool = True,
    decision: str | None = None,
) -> Scorecard:
    """Sample what the store lacks, score it, and report. A run id that exists is resumed: Retry continues, Run again starts
    anew. `decision` is the id of the decision that the run tests. Raises RunIncomplete when rollouts are missing or failed, after
    everything else was reported."""
    run_id = run_id or new_run_id(config)
    await validate(config)
    await plan_run(config, run_id, store, accept_drift or [], decision)
    async with opened(run_id, store) as run:
        await run_chunks(run)
        await verify(run_id)
    if run.cut_short:
        if run.reason and health:
            await check_health(run_id, store)
        left = f"`gym eval run --resume {run_id}` runs the {run.progress.left} rollouts to go"
        raise RunIncomplete(f"{run.reason}; with more of it {left}" if run.reason else f"stopped; {left}")
    card = await aggregate(run_id, store)
    if health:
        await check_health(run_id, store)
    if diagnosis:
        await diagnose_run(run_id, None, store)
    if card.incomplete:
        raise RunIncomplete(
            f"{card.incomplete} rollouts are missing or failed; `gym eval run --resume {run_id}` runs them"
        )
    return card
