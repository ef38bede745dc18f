"""Scoring stored rollouts again: a new, complete verdict set with no model call."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from gymflow.contracts.run import RunConfig, RunDocument
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.registry import Registry
from gymflow.runtime.components import RunEnvironment, RunTask, give_judge, run_environment
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_identity, judge_model
from gymflow.runtime.scoring import score, verdict_set_of
from gymflow.store import RunReader, RunWriter, Store, StoredRollout

NOT_RERUN = ("recorded", "live")
"""Verifiers whose verdict came from what is gone: a running system, or an environment's own word."""

TASKS_KEPT = 20_000
"""Prepared tasks held while rescoring; repeats of a task share one."""


@dataclass(slots=True)
class Rescored:
    """What a rescoring did."""

    run_id: str
    verdict_set: str
    previous: str | None
    scored: int = 0
    reused: int = 0
    refused: dict[str, str] = field(default_factory=dict)


async def rescore(
    store: Store, run_id: str, parameters: Mapping[str, Any], registry: Registry, *, timeout_s: float | None = None
) -> Rescored:
    """Score every completed rollout of a run with its verifiers under changed parameters.

    Verdicts that the set has already are left as they are. InputError where a parameter is unknown, or no environment of the
    run has a verifier that can score stored evidence; an environment that cannot be rescored is refused by name.
    """
    async with store.writer(run_id) as writer:
        reader = store.run(run_id)
        document = reader.document
        environments, refused = _environments(registry, document, parameters)
        if not environments:
            raise InputError("\n".join(f"{label}: {reason}" for label, reason in refused.items()))
        chosen = verdict_set_of(environments)
        previous = writer.verdict_sets[-1].name if writer.verdict_sets else None
        await writer.add_verdict_set(chosen)
        result = Rescored(run_id=run_id, verdict_set=chosen.name, previous=previous, refused=refused)
        limit = timeout_s or document.config.limits.verifier_timeout_s
        async with AsyncExitStack() as stack:
            await open_judge(stack, environments.values(), document.config, store)
            for environment in environments.values():
                stack.push_async_callback(environment.verifier.close)
                await environment.verifier.open()
            result.scored, result.reused = await complete_set(reader, writer, environments, chosen.name, limit)
        await writer.finish()
        return result


async def open_judge(
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


def _environments(
    registry: Registry, document: RunDocument, parameters: Mapping[str, Any]
) -> tuple[dict[str, RunEnvironment], dict[str, str]]:
    judge = judge_identity(document.config.models, document.identities)
    environments: dict[str, RunEnvironment] = {}
    refused: dict[str, str] = {}
    for label, one in document.environments.items():
        ref = one.manifest.verifier
        changed = ref.model_copy(update={"parameters": ref.parameters | dict(parameters)})
        manifest = one.manifest.model_copy(update={"verifier": changed})
        environment = run_environment(registry, registry.environment(one.reference), manifest, judge)
        if environment.verifier.rerun in NOT_RERUN:
            refused[label] = f"verifier {ref.name!r} is {environment.verifier.rerun}: its verdicts cannot be made again"
        else:
            environments[label] = environment
    return environments, refused


async def complete_set(
    reader: RunReader,
    writer: RunWriter,
    environments: Mapping[str, RunEnvironment],
    verdict_set: str,
    timeout_s: float,
    stopping: Callable[[], bool] = lambda: False,
) -> tuple[int, int]:
    """Score every completed rollout that has no reward in the set, until `stopping`; returns how many were scored, and how many
    had one."""
    known = await writer.scored(verdict_set)
    written = 0
    if known.issuperset(reader.completed_indices()):
        return written, len(known)
    slots = asyncio.Semaphore(reader.document.config.limits.concurrency)
    tasks: dict[int, RunTask] = {}

    async def one(stored: StoredRollout, environment: RunEnvironment, task: RunTask) -> VerdictRecord:
        async with slots:
            return await score(
                run_id=reader.run_id,
                rollout_id=stored.rollout_id,
                verdict_set=verdict_set,
                task=task,
                evidence=stored.evidence,
                evidence_digest=stored.evidence_digest,
                environment=environment,
                timeout_s=timeout_s,
            )

    for batch in reader.stored():
        if stopping():
            break
        scoring = []
        for stored in batch:
            environment = environments.get(stored.environment)
            if environment is None or stored.plan_index in known:
                continue
            task = tasks.get(stored.task_index)
            if task is None:
                if len(tasks) >= TASKS_KEPT:
                    tasks.clear()
                task = tasks[stored.task_index] = environment.task(stored.task)
            scoring.append(one(stored, environment, task))
        if scoring:
            written += await writer.commit_verdicts(await asyncio.gather(*scoring))
    return written, len(known)
