"""Scoring stored rollouts again: a complete verdict set in which nothing was sampled anew."""

from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gymflow.contracts.run import RunConfig, VerdictSet
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.registry import Registry
from gymflow.runtime.completing import complete_set
from gymflow.runtime.components import RunEnvironment, give_judge
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_identity, judge_model
from gymflow.runtime.rejudging import Change, environments_of, with_judge
from gymflow.runtime.verdict_pool import Order
from gymflow.runtime.verdict_sets import announce, verdict_set_of
from gymflow.store import RunWriter, Store


@dataclass(slots=True)
class Rescored:
    """What a rescoring did. `previous` is the set that was current before; `refused` names environments whose verdicts cannot be
    made again, and were kept."""

    run_id: str
    verdict_set: str
    previous: str | None
    scored: int = 0
    reused: int = 0
    refused: dict[str, str] = field(default_factory=dict)


async def rescore(
    store: Store, run_id: str, change: Change, registry: Registry, *, timeout_s: float | None = None
) -> Rescored:
    """Score every completed rollout of a run with its verifiers, changed or not, into the set of what judges.

    Verdicts that the set has already are left as they are. InputError where a parameter is unknown, or no environment of the
    run has a verifier that can score stored evidence, or the failed ones of a set would be judged otherwise than the set; an
    environment that cannot be rescored is refused by name, and its verdicts are taken over.
    """
    async with store.writer(run_id) as writer:
        reader = store.run(run_id)
        previous = writer.verdict_sets[-1] if writer.verdict_sets else None
        if change.failed_only and previous is None:
            raise InputError(f"run {run_id} has no verdicts yet, so none that failed; leave --failed-only out")
        completed = previous if change.failed_only else None
        config, identities = with_judge(reader.document, change.judge, completed)
        environments, refused = environments_of(
            registry, reader.document, change, judge_identity(config.models, identities), completed
        )
        if not environments:
            raise InputError("\n".join(f"{label}: {reason}" for label, reason in refused.items()))
        only = None
        if completed is not None:
            only = reader.completed_indices() - await _scored(writer, completed)
            if not only:
                return Rescored(run_id, completed.name, completed.name, 0, len(reader.completed_indices()), refused)
        chosen = verdict_set_of(environments, keeping=previous if refused else None, part_of=completed)
        await announce(writer, chosen, environments)
        result = Rescored(run_id, chosen.name, previous.name if previous else None, refused=refused)
        limit = timeout_s or config.limits.verifier_timeout_s
        async with AsyncExitStack() as stack:
            await _open_judge(stack, environments.values(), config, store)
            for environment in environments.values():
                stack.push_async_callback(environment.verifier.close)
                await environment.verifier.open()
            order = Order(store.root, reader.run_id, tuple(registry.search_dirs), change, completed, chosen.name, limit)
            result.scored, result.reused = await complete_set(
                reader, writer, environments, chosen.name, limit, only=only, order=order
            )
        await writer.finish()
        return result


async def _scored(writer: RunWriter, verdict_set: VerdictSet) -> set[int]:
    """Plan indices with a reward in a set, its own or taken over."""
    by_name = {one.name: one for one in writer.verdict_sets}
    found: set[int] = set()
    at: VerdictSet | None = verdict_set
    while at is not None:
        found |= await writer.scored(at.name)
        at = by_name.get(at.refers_to) if at.refers_to else None
    return found


async def _open_judge(
    stack: AsyncExitStack, environments: Collection[RunEnvironment], config: RunConfig, store: Store
) -> None:
    """Open the run's judge model, and no other, if one of the verifiers asks it; the stack closes it."""
    if not any(JUDGE in environment.verifier.needs for environment in environments):
        return
    gateway = Gateway(
        {JUDGE: config.models[JUDGE]},
        concurrency=config.limits.concurrency,
        unreachable_s=config.limits.unreachable_s,
    )
    await stack.enter_async_context(gateway)
    give_judge(environments, judge_model(gateway, config, store.judgements))
