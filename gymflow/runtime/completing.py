"""Completing a verdict set: every completed rollout that has no reward in it yet is scored, here and in processes that help."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gymflow.contracts.verdict import VerdictRecord
from gymflow.runtime.components import PreparedTasks, RunEnvironment, RunTask
from gymflow.runtime.concurrency import spread
from gymflow.runtime.replaying import replayed
from gymflow.runtime.scoring import score
from gymflow.runtime.verdict_pool import Batch, Order, Pace, VerdictPool, judged_digests
from gymflow.store import RunReader, RunWriter, StoredRollout
from gymflow.store.verdict_rows import VerdictRows, encoded
from gymflow.verifiers import Evidence, VerifierError

STORED_AT_ONCE = 512
"""Rollouts that are read, scored and committed together."""

TASKS_KEPT = 20_000
"""Prepared tasks held while rescoring; repeats of a task share one."""


@dataclass(slots=True)
class Scorer:
    """Scores stored rollouts into one verdict set."""

    run_id: str
    verdict_set: str
    environments: Mapping[str, RunEnvironment]
    timeout_s: float
    tasks: PreparedTasks = field(init=False)

    def __post_init__(self) -> None:
        self.tasks = PreparedTasks(self.environments, TASKS_KEPT)

    async def score(
        self, stored: StoredRollout, evidence: Evidence | None = None, refused: VerifierError | None = None
    ) -> VerdictRecord:
        """The verdict on a rollout, or on other evidence in place of its own; as `gymflow.runtime.scoring.score`."""
        return await score(
            run_id=self.run_id,
            rollout_id=stored.rollout_id,
            verdict_set=self.verdict_set,
            task=self.tasks.of(stored),
            evidence=evidence or stored.evidence,
            evidence_digest=stored.evidence_digest,
            environment=self.environments[stored.environment],
            timeout_s=self.timeout_s,
            refused=refused,
        )


async def complete_set(
    reader: RunReader,
    writer: RunWriter,
    environments: Mapping[str, RunEnvironment],
    verdict_set: str,
    timeout_s: float,
    stopping: Callable[[], bool] = lambda: False,
    only: Collection[int] | None = None,
    order: Order | None = None,
) -> tuple[int, int]:
    """Score every completed rollout (of `only`, where given) that has no reward in the set, until `stopping`; returns how many
    were scored, and how many were not because they had one. With an `order` for them, further processes help where it is
    computing that takes long."""
    completed = reader.completed_indices()
    known = await writer.scored(verdict_set) | (set() if only is None else completed.difference(only))
    written = 0
    if known.issuperset(completed):
        return written, len(known)
    slots = reader.document.config.limits.concurrency
    scorer = Scorer(reader.run_id, verdict_set, environments, timeout_s)

    async def one(stored: StoredRollout) -> VerdictRecord:
        environment = environments[stored.environment]
        if environment.verifier.rerun != "replay":
            return await scorer.score(stored)
        evidence, refused = await _replayed(reader, writer, stored, environment, scorer.tasks.of(stored), timeout_s)
        return await scorer.score(stored, evidence, refused)

    async def here(batch: Batch) -> VerdictRows:
        return encoded(await spread(one, batch, slots))

    # A batch is durable as a whole: where each verdict costs a call, few are at stake.
    judging = any(environment.judge is not None for environment in environments.values())
    if judging or any(environment.verifier.rerun != "stateless" for environment in environments.values()):
        order = None
    pace = Pace(len(completed - known))
    pool: VerdictPool | None = None
    try:
        for batch in reader.stored(batch_size=slots if judging else STORED_AT_ONCE):
            if stopping():
                break
            missing = [
                stored for stored in batch if stored.environment in environments and stored.plan_index not in known
            ]
            if pool is not None and pool.take(missing):
                continue
            rows = await here(missing)
            while pool is not None and (answer := pool.answer()) is not None:
                rows.extend(answer.verdicts or await here(answer.batch))
            written += await writer.commit_verdict_rows(rows)
            pace.count(len(missing))
            if pool is None and order is not None and pace.computing:
                pool = VerdictPool(order, judged_digests(environments))
        while pool is not None and (answer := await asyncio.to_thread(pool.answer, wait=True)) is not None:
            written += await writer.commit_verdict_rows(answer.verdicts or await here(answer.batch))
    finally:
        if pool is not None:
            await asyncio.to_thread(pool.close)
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
