"""Scoring stored rollouts again: a complete verdict set in which nothing was sampled anew."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from gymflow.contracts.agent import ComponentRef
from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.run import RunConfig, RunDocument, VerdictSet
from gymflow.contracts.verdict import Judged, VerdictRecord
from gymflow.documents import Document
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.registry import Registry
from gymflow.runtime.components import PreparedTasks, RunEnvironment, RunTask, give_judge, run_environment
from gymflow.runtime.concurrency import spread
from gymflow.runtime.judging import ROLE as JUDGE
from gymflow.runtime.judging import judge_identity, judge_model
from gymflow.runtime.replaying import replayed
from gymflow.runtime.scoring import score
from gymflow.runtime.verdict_sets import announce, verdict_set_of
from gymflow.store import RunReader, RunWriter, Store, StoredRollout
from gymflow.verifiers import Evidence, VerifierError

NOT_RERUN = ("recorded", "live")
"""Verifiers whose verdict came from what is gone: a running system, or an environment's own word."""

JUDGED_BY = {
    "verifier": "the verifier",
    "version": "its version",
    "code_digest": "its code",
    "parameter_digest": "its parameters",
    "judge": "the judge model",
}
"""What of a `Judged` differs, in words."""

STORED_AT_ONCE = 512
"""Rollouts that are read, scored and committed together."""

TASKS_KEPT = 20_000
"""Prepared tasks held while rescoring; repeats of a task share one."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a rescoring does otherwise than the run: parameters over the run's, another verifier, fields of the judge model. With
    `failed_only` only rollouts without a reward in the current set are judged again, by what judged that set."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    verifier: str | None = None
    judge: Mapping[str, Any] = field(default_factory=dict)
    failed_only: bool = False


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
        config, identities = _with_judge(reader.document, change.judge, completed)
        environments, refused = _environments(
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
            result.scored, result.reused = await complete_set(
                reader, writer, environments, chosen.name, limit, only=only
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


def _with_judge(
    document: RunDocument, changes: Mapping[str, Any], completed: VerdictSet | None
) -> tuple[RunConfig, dict[str, ModelIdentity]]:
    """The run's configuration and identities, with the judge model of the set to complete, and the changes that are given."""
    before = document.config.models.get(JUDGE)
    given = before.model_dump(exclude_unset=True) if before else {}
    asked = next((one.judge for one in completed.judged.values() if one.judge), None) if completed else None
    if asked is not None and asked != judge_identity(document.config.models, document.identities):
        given = (given if given.get("provider") == asked["provider"] else {}) | asked
    elif not changes:
        return document.config, document.identities
    spec = Document("--set judge", given | dict(changes)).validated(ModelSpec)
    config = document.config.model_copy(update={"models": document.config.models | {JUDGE: spec}})
    return config, document.identities | Gateway({JUDGE: spec}).identities()


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


def _environments(
    registry: Registry,
    document: RunDocument,
    change: Change,
    judge: dict[str, Any] | None,
    completed: VerdictSet | None,
) -> tuple[dict[str, RunEnvironment], dict[str, str]]:
    """The environments with the changed verifiers, and why others cannot be judged again. A parameter goes to the verifiers that
    have it. InputError where they would not judge as the set to complete was judged."""
    environments: dict[str, RunEnvironment] = {}
    refused: dict[str, str] = {}
    unknown = dict(change.parameters)
    for label, one in document.environments.items():
        entry = registry.environment(one.reference) if one.reference else None
        before = one.manifest.verifier
        if completed is not None:
            before = ComponentRef(name=completed.judged[label].verifier, parameters=completed.parameters.get(label, {}))
            if label not in completed.parameters:
                refused[label] = f"verdict set {completed.name} took its verdicts over from {before.name!r}: they stay"
                continue
        name = change.verifier or before.name
        known = registry.verifier_class(name, entry).Parameters.model_fields
        parameters = dict(before.parameters) if name == before.name else {}
        for parameter in known.keys() & change.parameters.keys():
            parameters[parameter] = change.parameters[parameter]
            unknown.pop(parameter, None)
        ref = ComponentRef(name=name, parameters=parameters)
        environment = run_environment(registry, entry, one.manifest.model_copy(update={"verifier": ref}), judge)
        if environment.verifier.rerun in NOT_RERUN:
            refused[label] = f"verifier {name!r} is {environment.verifier.rerun}: its verdicts cannot be made again"
        else:
            environments[label] = environment
            if completed is not None:
                _same_judging(label, completed, environment.judged)
    if unknown:
        names = {one.verifier.__class__.__name__: one.verifier.Parameters.model_fields for one in environments.values()}
        known_ones = "; ".join(f"{name}: {', '.join(fields) or 'none'}" for name, fields in names.items())
        raise InputError(f"no verifier of the run has a parameter {', '.join(unknown)}; parameters of {known_ones}")
    return environments, refused


def _same_judging(label: str, completed: VerdictSet, now: Judged) -> None:
    """InputError where a set would hold verdicts that came about differently."""
    before = completed.judged[label]
    differing = [what for field, what in JUDGED_BY.items() if getattr(before, field) != getattr(now, field)]
    if differing:
        raise InputError(
            f"{label}: --failed-only completes verdict set {completed.name} as it was judged, by {before.verifier!r}, and now "
            f"{' and '.join(differing)} differ; leave --failed-only out to judge every rollout"
        )


async def complete_set(
    reader: RunReader,
    writer: RunWriter,
    environments: Mapping[str, RunEnvironment],
    verdict_set: str,
    timeout_s: float,
    stopping: Callable[[], bool] = lambda: False,
    only: Collection[int] | None = None,
) -> tuple[int, int]:
    """Score every completed rollout (of `only`, where given) that has no reward in the set, until `stopping`; returns how many
    were scored, and how many were not because they had one."""
    completed = reader.completed_indices()
    known = await writer.scored(verdict_set) | (set() if only is None else completed.difference(only))
    written = 0
    if known.issuperset(completed):
        return written, len(known)
    slots = reader.document.config.limits.concurrency
    tasks = PreparedTasks(environments, TASKS_KEPT)

    async def one(stored: StoredRollout) -> VerdictRecord:
        environment = environments[stored.environment]
        task = tasks.of(stored)
        evidence, refused = stored.evidence, None
        if environment.verifier.rerun == "replay":
            evidence, refused = await _replayed(reader, writer, stored, environment, task, timeout_s)
        return await score(
            run_id=reader.run_id,
            rollout_id=stored.rollout_id,
            verdict_set=verdict_set,
            task=task,
            evidence=evidence,
            evidence_digest=stored.evidence_digest,
            environment=environment,
            timeout_s=timeout_s,
            refused=refused,
        )

    # A batch is durable as a whole: where each verdict costs a call, few are at stake.
    judging = any(environment.judge is not None for environment in environments.values())
    for batch in reader.stored(batch_size=slots if judging else STORED_AT_ONCE):
        if stopping():
            break
        missing = [stored for stored in batch if stored.environment in environments and stored.plan_index not in known]
        written += await writer.commit_verdicts(await spread(one, missing, slots))
    return written, len(known)


async def _replayed(
    reader: RunReader,
    writer: RunWriter,
    stored: StoredRollout,
    environment: RunEnvironment,
    task: RunTask,
    timeout_s: float,
) -> tuple[Evidence, VerifierError | None]:
    """The evidence of the actions played again; where that is refused, the stored evidence and the reason."""
    record = await asyncio.to_thread(reader.record, stored.plan_index)
    try:
        again = await replayed(record, task, environment, writer.put_artifact, timeout_s)
    except VerifierError as refusal:
        return stored.evidence, refusal
    return Evidence.of(again, reader.read_artifact), None
