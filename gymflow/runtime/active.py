"""A run that is being worked on: its lease, its models, its slots, and the rollouts that are still to do."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from gymflow.contracts.plan import PlannedRollout
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunDocument
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import RunIncomplete
from gymflow.models.spending import BudgetExhausted
from gymflow.runtime.completing import complete_set
from gymflow.runtime.components import RunAgent, RunEnvironment, RunTask
from gymflow.runtime.pool import Pool
from gymflow.runtime.progress import Progress
from gymflow.runtime.rollout import Player
from gymflow.store import RunReader, RunWriter
from gymflow.store.planned import PlanTable, TaskTable

DRAIN_S = 5.0
"""How long running rollouts may finish once a stop was asked for; a command must be gone within 10 s, closing included."""

PREPARED = 1024
"""Tasks that are kept prepared."""


@dataclass
class ActiveRun:
    """One process's hold on a run, from the lease to the last commit."""

    document: RunDocument
    reader: RunReader
    writer: RunWriter
    environments: dict[str, RunEnvironment]
    agents: dict[tuple[str, str], RunAgent]
    player: Player
    pool: Pool
    progress: Progress
    plan: PlanTable
    tasks: TaskTable
    completed: set[int]
    stopping: bool = False
    reason: str | None = None
    """Why the run ended by itself before all was done."""
    _ending: asyncio.Task[None] | None = None
    _prepared: dict[int, RunTask] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return self.document.run_id

    @property
    def chunk_window(self) -> int:
        """Chunks at once: enough that the end of one never leaves a slot idle."""
        limits = self.document.config.limits
        return math.ceil(limits.concurrency / limits.chunk_size) + 1

    @property
    def cut_short(self) -> bool:
        """Whether a stop left rollouts undone."""
        return self.stopping and self.progress.left > 0

    def pending(self, chunk: int) -> bool:
        """Whether the store lacked any rollout of a chunk when the run was opened."""
        return not self.completed.issuperset(self.plan.chunk_indices(chunk))

    async def run_chunk(self, chunk: int) -> None:
        """Play what the store lacks of a chunk; returns when it is durable."""
        rows = self.plan.rows(chunk, self.completed)
        prepared = {row.task_index: self._task(row) for row in rows}

        async def play(planned: PlannedRollout) -> tuple[RolloutRecord, VerdictRecord | None] | None:
            try:
                return await self.player.sample(
                    planned,
                    prepared[planned.task_index],
                    self.environments[planned.environment],
                    self.agents[planned.environment, planned.agent],
                )
            except BudgetExhausted as exhausted:
                self.end(str(exhausted))  # a resume samples it
                return None

        async def keep(played: tuple[RolloutRecord, VerdictRecord | None] | None) -> None:
            if played is None:
                return
            record, verdict = played
            await self.writer.commit(record, [verdict] if verdict else [])
            self.progress.count(record, verdict)
            self._within_failures()

        await self.pool.map(play, rows, keep)

    def _task(self, planned: PlannedRollout) -> RunTask:
        """A task, prepared for playing and scoring; the last ones are kept, since the plan goes over all tasks once a repeat."""
        task = self._prepared.pop(planned.task_index, None)
        if task is None:
            task = self.environments[planned.environment].task(self.tasks[planned.task_index])
            if len(self._prepared) >= PREPARED:
                del self._prepared[next(iter(self._prepared))]
        self._prepared[planned.task_index] = task
        return task

    async def take(self, record: RolloutRecord, planned: PlannedRollout) -> None:
        """Store a rollout that was sampled elsewhere, scored by this run's verifier."""
        environment = self.environments[planned.environment]
        verdict = await self.player.judge(record, self._task(planned), environment)
        await self.writer.commit(record, [verdict])
        self.completed.add(planned.plan_index)
        self.progress.count(record, verdict)

    async def complete_verdicts(self) -> int:
        """Score what is durable but has no reward in the current verdict set, as after a change of the verifier; returns how
        many rollouts that were."""
        scored, _ = await complete_set(
            self.reader,
            self.writer,
            self.environments,
            self.player.verdict_set,
            self.document.config.limits.verifier_timeout_s,
            stopping=lambda: self.stopping,
        )
        return scored

    def _within_failures(self) -> None:
        limit = self.document.config.limits.max_failures
        if limit is not None and (failed := self.progress.failures.total()) >= limit:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.progress.failures.most_common())
            raise RunIncomplete(
                f"{failed} rollouts failed ({kinds}), which limits.max_failures does not allow; once that is mended, "
                f"`gym eval run --resume {self.run_id}` goes on"
            )

    def end(self, reason: str, grace_s: float | None = None) -> None:
        """Begin nothing more, for a reason of the run's own; what runs may finish, for `grace_s` seconds where they are given."""
        if not self.stopping:
            self.stopping, self.reason = True, reason
            self._ending = asyncio.create_task(self.pool.drain(grace_s))

    async def stop(self) -> None:
        """Begin nothing more; what runs may finish for a while, then it is left to be run again."""
        self.stopping = True
        await self.pool.drain(DRAIN_S)


_active: dict[str, ActiveRun] = {}

Watch = Callable[[ActiveRun], AbstractAsyncContextManager[Any]]
watcher: ContextVar[Watch] = ContextVar("watcher", default=lambda _: nullcontext())
"""Who looks on while a run works, such as the live display of a terminal."""


@contextmanager
def holding(run: ActiveRun) -> Iterator[None]:
    """Let steps find the run for as long as the block lasts."""
    _active[run.run_id] = run
    try:
        yield
    finally:
        del _active[run.run_id]


def active_run(run_id: str) -> ActiveRun:
    """The run that this process works on; steps get at it by its id, since their inputs have to be small and plain."""
    return _active[run_id]
