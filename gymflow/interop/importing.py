"""Other tools' rollouts become a run of the store: planned, committed and scored like any other, with what they lack as gaps."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from gymflow import __version__, keys
from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.contracts.exchange import ImportReport
from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.outcome import Status, StopReason, VerdictFailure
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import EvidenceRecord, Rollout, RolloutRecord
from gymflow.contracts.run import (
    EnvironmentOfRun,
    EnvironmentSelection,
    Fingerprint,
    RunConfig,
    RunDocument,
    VerdictSet,
)
from gymflow.contracts.task import Task
from gymflow.contracts.verdict import Judged, VerdictRecord
from gymflow.interop import IMPORTED
from gymflow.interop.continuing import created_or_continued
from gymflow.interop.rollouts import ForeignRollout, OwnRollout
from gymflow.runtime.rollout import total_usage
from gymflow.store import Store, rollout_id
from gymflow.store.encoding import dumps
from gymflow.verifiers import Verifier

CHUNK = 256

Source = Callable[[], Iterator[ForeignRollout | OwnRollout]]
"""Reads the file from its beginning; it is read twice, so that no rollout has to be held."""


@dataclass(slots=True)
class Target:
    """What the imported run is to be."""

    run_id: str
    name: str
    format: str
    label: str
    reference: str
    """The environment as the registry finds it; empty: none of ours."""
    manifest: Manifest
    verifier: Verifier[Any]


@dataclass(slots=True)
class _Plan:
    tasks: list[PlannedTask] = field(default_factory=list)
    rollouts: list[PlannedRollout] = field(default_factory=list)
    agents: dict[str, str] = field(default_factory=dict)
    """Agent -> model."""
    misfits: int = 0
    misfit: str | None = None
    scored: bool = False
    passed_over: set[int] = field(default_factory=set)
    """Positions in the file of what stands there already."""
    conflicts: list[str] = field(default_factory=list)


async def import_foreign(store: Store, source: Iterable[ForeignRollout], again: Source, target: Target) -> ImportReport:
    """Create the run, or go on with one that was cut short, and commit every rollout of the file. `source` is read for the plan,
    `again` for the rollouts."""
    plan = _planned(source, target)
    judged = Judged(
        verifier=target.format,
        version="",
        code_digest=keys.digest([IMPORTED, target.format]),
        parameter_digest=keys.digest([]),
    )
    chosen = VerdictSet(
        name=keys.digest({target.label: judged.model_dump(mode="json")})[:8],
        created_at=time.time(),
        judged={target.label: judged},
    )
    held = created_or_continued(store, _document(target, plan), plan.tasks, plan.rollouts)
    gaps: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    read = {task.task_index: keys.digest(Task.model_validate(task.task).verifier_fields) for task in plan.tasks}
    async with store.writer(target.run_id) as writer:
        if plan.scored:
            await writer.add_verdict_set(chosen)
        kept = (foreign for position, foreign in enumerate(again()) if position not in plan.passed_over)
        pairs = zip(kept, plan.rollouts, strict=True)
        while batch := list(islice(pairs, CHUNK)):
            commits = []
            for foreign, planned in batch:
                assert isinstance(foreign, ForeignRollout)
                record = _record(foreign, planned, target)
                gaps.update({gap.code for gap in foreign.trajectory.gaps})
                counts[record.rollout.status] += 1
                verdicts = []
                if plan.scored and record.rollout.status is Status.COMPLETED:
                    verdicts = [_verdict(foreign, record, chosen, judged, read[planned.task_index], target.manifest)]
                    counts["scored"] += verdicts[0].verdict is not None
                if planned.plan_index not in held:
                    commits.append(writer.commit(record, verdicts))
            await asyncio.gather(*commits)
        await writer.finish()
    return ImportReport(
        run_id=target.run_id,
        format=target.format,
        environment=target.label,
        verifier=target.manifest.verifier.name,
        verdict_set=chosen.name if plan.scored else None,
        tasks=len(plan.tasks),
        rollouts=len(plan.rollouts),
        completed=counts[Status.COMPLETED],
        failed=counts[Status.FAILED],
        scored=counts["scored"],
        gaps=dict(sorted(gaps.items())),
        repeated=len(plan.passed_over) - len(plan.conflicts),
        conflicts=plan.conflicts,
        misfits=plan.misfits,
        notes=[f"{len(held)} rollouts were here already, from an import that was cut short"] * bool(held)
        + [f"{plan.misfits} tasks do not fit verifier {target.manifest.verifier.name}: {plan.misfit}"]
        * bool(plan.misfit),
    )


def _planned(source: Iterable[ForeignRollout], target: Target) -> _Plan:
    """Repeats of a task are what the format says, else what has the same input, id and verifier fields. Of one and the same rollout
    of a task, by its id or by the number of its repeat, the first in the file counts."""
    plan = _Plan()
    index_of: dict[str, int] = {}
    taken: dict[tuple[int, str], set[int]] = {}
    seen: dict[tuple[Any, ...], tuple[int, str, bytes]] = {}
    for position, foreign in enumerate(source):
        task = Task.model_validate(foreign.task)
        key = keys.task_key(task, target.manifest.sandbox)
        read, fault = _verifier_part(task, target.verifier)
        same = keys.digest([key, foreign.identity] if foreign.identity else [key, foreign.task_id, read])
        sample = _sample(foreign)
        if sample is not None:
            first, where, before = seen.setdefault((same, *sample), (position, foreign.where, _digest(foreign)))
            if first != position:
                plan.passed_over.add(position)
                if before != _digest(foreign):
                    name = (
                        foreign.rollout_id or f"repeat {foreign.repeat} of task {foreign.task_id or foreign.identity}"
                    )
                    plan.conflicts.append(
                        f"{foreign.where}: {name} stands at {where} already, which counts, and differs"
                    )
                continue
        index = index_of.get(same)
        if index is None:
            index = index_of[same] = len(plan.tasks)
            plan.misfits += fault is not None
            plan.misfit = plan.misfit or fault
            plan.tasks.append(
                PlannedTask(
                    task_index=index,
                    task_key=key,
                    row_digest=keys.row_digest(task),
                    environment=target.label,
                    split=IMPORTED,
                    task_id=foreign.task_id or str(index),
                    tags=task.tags,
                    cluster=task.cluster,
                    task=task.model_dump(mode="python", exclude_none=True),
                )
            )
        numbers = taken.setdefault((index, foreign.agent), set())
        repeat = foreign.repeat
        if repeat is None or repeat in numbers:
            repeat = next(number for number in range(len(numbers) + 1) if number not in numbers)
        numbers.add(repeat)
        plan.agents.setdefault(foreign.agent, foreign.model)
        plan.scored = plan.scored or foreign.verdict is not None or foreign.verdict_failure is not None
        plan.rollouts.append(
            PlannedRollout(
                plan_index=len(plan.rollouts),
                task_index=index,
                task_key=key,
                task_id=plan.tasks[index].task_id,
                environment=target.label,
                split=IMPORTED,
                agent=foreign.agent,
                repeat=repeat,
                seed=None,
                chunk=len(plan.rollouts) // CHUNK,
                rollout_key=keys.digest([IMPORTED, target.format, key, foreign.agent, foreign.model, same, repeat]),
            )
        )
    return plan


def _sample(foreign: ForeignRollout) -> tuple[Any, ...] | None:
    """What is the same of one sample within its task; None where the format does not tell samples apart."""
    by = foreign.agent, foreign.model
    if foreign.rollout_id is not None:
        return (*by, "id", foreign.rollout_id)
    return None if foreign.repeat is None else (*by, "repeat", foreign.repeat)


def _digest(foreign: ForeignRollout) -> bytes:
    """Of all that the file says of a rollout."""
    said = {one.name: getattr(foreign, one.name) for one in fields(foreign) if one.name != "where"}
    return hashlib.sha256(dumps(to_jsonable_python(said))[0]).digest()


def _verifier_part(task: Task, verifier: Verifier[Any]) -> tuple[Any, str | None]:
    """The fields that the verifier reads, and why they do not fit it."""
    try:
        fields = verifier.task_fields.model_validate(task.verifier_fields)
    except ValidationError as error:
        first = error.errors()[0]
        return None, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return fields.model_dump(mode="json"), None


def _document(target: Target, plan: _Plan) -> RunDocument:
    models = {model: ModelSpec(provider=IMPORTED, model=model) for model in plan.agents.values()}
    return RunDocument(
        run_id=target.run_id,
        name=target.name,
        created_at=time.time(),
        config=RunConfig(
            name=target.name,
            environments=[EnvironmentSelection(name=target.reference or target.label)],
            models=models,
            seed=None,
        ),
        fingerprint=Fingerprint(
            sampling={
                "model": keys.digest(sorted(models)),
                "harness": keys.digest(sorted(plan.agents)),
                "prompt": keys.digest([IMPORTED, target.format]),
                "sampling": keys.digest([IMPORTED, target.format]),
                "dataset": keys.digest(sorted(task.row_digest for task in plan.tasks)),
                "environment": keys.digest([IMPORTED, target.label]),
                "sandbox": keys.digest(None),
                "engine": keys.digest([IMPORTED, target.format]),
            },
            scoring={"verifier": keys.digest([IMPORTED, target.format]), "judge": keys.digest(None)},
        ),
        environments={
            target.label: EnvironmentOfRun(reference=target.reference, split=IMPORTED, manifest=target.manifest)
        },
        agents={
            target.label: {
                agent: AgentSpec(harness=ComponentRef(name=IMPORTED), model=model)
                for agent, model in plan.agents.items()
            }
        },
        identities={model: ModelIdentity(provider=IMPORTED, model=model) for model in models},
        versions={"gymflow": __version__, "format": target.format},
    )


def _record(foreign: ForeignRollout, planned: PlannedRollout, target: Target) -> RolloutRecord:
    trajectory = foreign.trajectory
    failed = foreign.failure is not None
    trajectory.stop_reason = None if failed else trajectory.stop_reason or StopReason.FINISHED
    evidence = EvidenceRecord(
        trajectory=trajectory, response={"output": foreign.response}, snapshot=foreign.snapshot, artifacts={}
    )
    return RolloutRecord(
        rollout=Rollout(
            run_id=target.run_id,
            rollout_id=rollout_id(target.run_id, planned.plan_index),
            rollout_key=planned.rollout_key,
            plan_index=planned.plan_index,
            task_key=planned.task_key,
            task_id=planned.task_id,
            repeat=planned.repeat,
            environment=planned.environment,
            split=planned.split,
            agent=planned.agent,
            model=foreign.model,
            seed=None,
            status=Status.FAILED if failed else Status.COMPLETED,
            stop_reason=trajectory.stop_reason,
            failure=foreign.failure,
            failure_message=foreign.failure_message,
            started_at=foreign.started_at,
            duration_s=foreign.duration_s,
            turns=len(trajectory.turns),
            model_calls=len(foreign.calls),
            tool_calls=sum(len(turn.tool_calls) for turn in trajectory.turns),
            usage=foreign.usage if any(value is not None for _, value in foreign.usage) else total_usage(foreign.calls),
            sampled_in=target.run_id,
            evidence_digest=keys.evidence_digest(evidence),
        ),
        evidence=evidence,
        model_calls=foreign.calls,
    )


def _verdict(
    foreign: ForeignRollout,
    record: RolloutRecord,
    chosen: VerdictSet,
    judged: Judged,
    fields_digest: str,
    manifest: Manifest,
) -> VerdictRecord:
    failure = message = None
    if foreign.verdict is None:
        failure = foreign.verdict_failure or VerdictFailure.VERIFIER_ERROR
        message = foreign.verdict_message or "the file has no reward for it"
    return VerdictRecord(
        run_id=record.rollout.run_id,
        rollout_id=record.rollout.rollout_id,
        verdict_set=chosen.name,
        verdict_key=keys.verdict_key(
            rollout_id=record.rollout.rollout_id,
            evidence_digest=record.rollout.evidence_digest,
            judged_digest=keys.digest(judged.model_dump(mode="json")),
            fields_digest=fields_digest,
        ),
        verdict=foreign.verdict,
        failure=failure,
        failure_message=message,
        passed=foreign.verdict.reward >= manifest.passing_reward if foreign.verdict else None,
        duration_s=0.0,
        judged=judged,
    )
