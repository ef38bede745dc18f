"""Taking hold of a run: its lease, its models, its components, in the order in which a failure costs least."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from gymflow import keys
from gymflow.contracts.run import RunDocument
from gymflow.models.gateway import Gateway
from gymflow.models.spending import TIME_OVER
from gymflow.paths import store_root
from gymflow.registry import Registry
from gymflow.runtime.active import DRAIN_S, ActiveRun, holding, watcher
from gymflow.runtime.components import (
    RunAgent,
    RunEnvironment,
    effective_sampling,
    give_judge,
    run_agent,
    run_environment,
)
from gymflow.runtime.garbage import rare_collections
from gymflow.runtime.judging import judge_identity, judge_model
from gymflow.runtime.pool import Pool
from gymflow.runtime.progress import Progress, earlier_rewards
from gymflow.runtime.reusing import reuse
from gymflow.runtime.rollout import Player
from gymflow.runtime.spent import spent_before
from gymflow.runtime.verdict_sets import announce, verdict_set_of
from gymflow.store import Store
from gymflow.store.planned import PlanTable, TaskTable


@asynccontextmanager
async def opened(run_id: str, store: str | None) -> AsyncIterator[ActiveRun]:
    """Hold a prepared run while the block plays its pending rollouts.

    Raises RunLocked when another process holds it.
    """
    place = Store(store_root(store))
    registry = Registry()
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(place.writer(run_id))
        reader = place.run(run_id)
        document = reader.document
        config = document.config
        plan = PlanTable(reader.layout)
        completed = reader.completed_indices() & plan.indices
        environments = run_environments(registry, document)
        agents = _agents(registry, document)
        gateway = await stack.enter_async_context(
            Gateway(
                config.models,
                concurrency=config.limits.concurrency,
                unreachable_s=config.limits.unreachable_s,
                spending=spent_before(place, run_id, config.run_budget),
            )
        )
        give_judge(environments.values(), judge_model(gateway, config, place.judgements))
        await open_components(stack, environments.values(), agents.values())
        chosen = await announce(writer, verdict_set_of(environments), environments)
        run = ActiveRun(
            document=document,
            reader=reader,
            writer=writer,
            environments=environments,
            agents=agents,
            player=Player(
                run_id=run_id,
                gateway=gateway,
                budgets=config.budgets,
                limits=config.limits,
                put_artifact=writer.put_artifact,
                read_artifact=place.artifacts.read,
                verdict_set=chosen.name,
                drift=keys.digest(document.fingerprint.sampling) if document.accepted_drift else None,
            ),
            pool=await stack.enter_async_context(Pool(config.limits.concurrency)),
            progress=Progress(
                planned=len(plan),
                already=len(completed),
                rewards=earlier_rewards(place, run_id, chosen.name) if completed else {},
            ),
            plan=plan,
            tasks=TaskTable(reader.layout),
            completed=completed,
        )
        if (limit := config.run_budget.wall_time_s) is not None:
            timer = asyncio.get_running_loop().call_later(limit, run.end, TIME_OVER, DRAIN_S)
            stack.callback(timer.cancel)
        if config.reuse == "store":
            await reuse(run, place)
        with holding(run), rare_collections():
            async with watcher.get()(run):
                yield run
        if not run.cut_short:  # whoever stops a run does not wait for its parts to be merged; a resume does that
            await writer.finish()


async def open_components(
    stack: AsyncExitStack, environments: Iterable[RunEnvironment], agents: Iterable[RunAgent]
) -> None:
    """Open verifiers and harnesses; the stack closes them."""
    for environment in environments:
        stack.push_async_callback(environment.verifier.close)
        await environment.verifier.open()
    for agent in agents:
        stack.push_async_callback(agent.harness.close)
        await agent.harness.open()


def run_environments(registry: Registry, document: RunDocument) -> dict[str, RunEnvironment]:
    """The environments of a run, with the verifiers as its document has them."""
    judge = judge_identity(document.config.models, document.identities)
    return {
        label: run_environment(registry, registry.environment(one.reference), one.manifest, judge)
        for label, one in document.environments.items()
    }


def _agents(registry: Registry, document: RunDocument) -> dict[tuple[str, str], RunAgent]:
    agents: dict[tuple[str, str], RunAgent] = {}
    for label, specs in document.agents.items():
        one = document.environments[label]
        benchmark = one.manifest.benchmarks[one.benchmark].sampling if one.benchmark else None
        for name, spec in specs.items():
            sampling = effective_sampling(document.config, spec.model, benchmark)
            agents[label, name] = run_agent(registry, spec, sampling)
    return agents
