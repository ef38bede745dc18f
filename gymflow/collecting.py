"""Scored rollouts for a trainer's loop: the same scheduler, without Prefect and without reuse.

model = ModelSpec(provider="vllm", model="policy", base_url=url)
async for sample in collect("arithmetic", "simple", model, repeats=8, weight_version="step-40"):
    sample.record.model_calls[0].tokens, sample.verdict.verdict.reward
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.model import ModelIdentity, ModelSpec, Sampling
from gymflow.contracts.plan import PlannedRollout
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import Budgets, EnvironmentSelection, Limits, RunConfig
from gymflow.contracts.verdict import VerdictRecord
from gymflow.documents import Document
from gymflow.errors import InputError
from gymflow.models.base import ModelRequest, ModelResponse, Provider
from gymflow.models.gateway import Gateway
from gymflow.registry import Registry
from gymflow.runtime.components import give_judge
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_model
from gymflow.runtime.opening import open_components
from gymflow.runtime.planning import Planner
from gymflow.runtime.pool import Pool
from gymflow.runtime.rollout import Player
from gymflow.runtime.verdict_sets import announce, verdict_set_of
from gymflow.store import RunWriter, Store

POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Sample:
    """One rollout with its verdict; the verdict is None where infrastructure failed the rollout."""

    record: RolloutRecord
    verdict: VerdictRecord | None


async def collect(
    tasks: str | EnvironmentSelection,
    agent: str | AgentSpec | None = None,
    model: str | ModelSpec | Provider = "embedded",
    *,
    repeats: int = 1,
    seed: int | None = None,
    sampling: Sampling | None = None,
    budgets: Budgets | None = None,
    limits: Limits | None = None,
    judge: ModelSpec | None = None,
    weight_version: str | None = None,
    store: str | Path | None = None,
) -> AsyncIterator[Sample]:
    """Yield scored rollouts as they end, in no particular order.

    `tasks` is an environment by name, or a selection of it (split, task ids, limit). `agent` is a harness by name or an agent
    specification; default: the environment's harness. `model` is a specification, a provider's name, or a provider that is
    already open and stays so, which is how a trainer hands in its own engine; default: the embedded model. With a `store` every sample is durable
    there before it is yielded. `judge` is the model that the environment's verifier asks, where it asks one. Without a seed, two calls with equal arguments sample differently.

    Raises InputError for bad arguments or a model that cannot be called, EndpointDown when it goes away for good.
    """
    provider = model if isinstance(model, Provider) else None
    spec = provider.spec if provider else {"provider": model} if isinstance(model, str) else model
    fields = {
        "name": "collect",
        "environments": [{"name": tasks} if isinstance(tasks, str) else tasks],
        "models": {POLICY: spec} | ({JUDGE: judge} if judge else {}),
        "agents": _agents(agent),
        "repeats": repeats,
        "seed": secrets.randbelow(2**31) if seed is None else seed,
        "sampling": sampling or Sampling(),
        "budgets": budgets or Budgets(),
        "limits": limits or Limits(),
        "reuse": "none",
    }
    config = Document("collect", fields).validated(RunConfig)
    async with AsyncExitStack() as stack:
        done, playing, writer = await _playing(stack, config, provider, weight_version, store)
        while not (playing.done() and done.empty()):
            waiting = asyncio.create_task(done.get())
            await asyncio.wait([waiting, playing], return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                yield waiting.result()
            else:
                waiting.cancel()
        playing.result()  # raises what ended the playing, after all that came before it
        if writer:
            await writer.finish()


def _agents(agent: str | AgentSpec | None) -> dict[str, AgentSpec]:
    if agent is None:
        return {}
    if isinstance(agent, str):
        return {agent: AgentSpec(harness=ComponentRef(name=agent), model=POLICY)}
    return {agent.harness.name if agent.harness else POLICY: agent}


async def _playing(
    stack: AsyncExitStack,
    config: RunConfig,
    provider: Provider | None,
    weight_version: str | None,
    root: str | Path | None,
) -> tuple["asyncio.Queue[Sample]", "asyncio.Task[None]", RunWriter | None]:
    """Start playing: where samples come out, what plays them, and the writer of the store if there is one. The stack ends all of
    it. No generator of its own, since a loop that ends would close it while `collect` is being closed around it."""
    registry = Registry()
    gateway = Gateway(
        config.models,
        concurrency=config.limits.concurrency,
        unreachable_s=config.limits.unreachable_s,
        providers={POLICY: _Lent(provider)} if provider else None,
    )
    planner = Planner(config, registry, gateway.identities())
    await planner.identify_sandboxes()
    run_id = f"collect-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(4)}"
    planned_tasks = list(planner.tasks())
    plan = list(planner.rollouts())
    if not plan:
        raise InputError("nothing is selected to collect from")
    selected = planner.selected[0]
    environment = selected.environment
    chosen = verdict_set_of({selected.label: environment})
    kept: dict[str, bytes] = {}
    writer = None
    if root is not None:
        place = Store(root)
        place.create_run(planner.document(run_id), planned_tasks, plan)
        writer = await stack.enter_async_context(place.writer(run_id))
        await announce(writer, chosen, {selected.label: environment})
    await stack.enter_async_context(gateway)
    await gateway.probe()
    judgements = place.judgements if writer else None
    give_judge([environment], judge_model(gateway, config, judgements))
    await open_components(stack, [environment], selected.agents.values())
    player = Player(
        run_id=run_id,
        gateway=gateway,
        budgets=config.budgets,
        limits=config.limits,
        put_artifact=writer.put_artifact if writer else _keeping(kept),
        read_artifact=place.artifacts.read if writer else kept.__getitem__,
        verdict_set=chosen.name,
        weight_version=weight_version,
    )
    rows = {task.task_index: environment.task(task.task) for task in planned_tasks}
    done: asyncio.Queue[Sample] = asyncio.Queue(maxsize=config.limits.concurrency)

    async def one(planned: PlannedRollout) -> None:
        record, verdict = await player.sample(
            planned, rows[planned.task_index], environment, selected.agents[planned.agent]
        )
        if writer:
            await writer.commit(record, [verdict] if verdict else [])
        await done.put(Sample(record, verdict))

    pool = await stack.enter_async_context(Pool(config.limits.concurrency))
    playing = asyncio.create_task(pool.map(one, plan))
    stack.callback(playing.cancel)
    return done, playing, writer


def _keeping(kept: dict[str, bytes]) -> Callable[[bytes], Awaitable[str]]:
    async def put(data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        kept[digest] = data
        return digest

    return put


class _Lent(Provider):
    """A caller's provider, which the gateway must neither open nor close."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider.spec)
        self._provider = provider

    async def open(self) -> None:
        """It is open already."""

    async def close(self) -> None:
        """It stays open."""

    def identity(self) -> ModelIdentity:
        return self._provider.identity()

    async def probe(self) -> None:
        await self._provider.probe()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return await self._provider.complete(request)
