"""The run that holds what `gym serve` captured: a rollout a conversation, committed anew when it has gone on."""

import logging
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from typing import Any
from weakref import WeakKeyDictionary

from gymflow import __version__, keys
from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.environment import Manifest
from gymflow.contracts.model import ModelIdentity, ModelSpec
from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import EvidenceRecord, Rollout, RolloutRecord
from gymflow.contracts.run import EnvironmentOfRun, EnvironmentSelection, Fingerprint, RunConfig, RunDocument
from gymflow.contracts.task import Task
from gymflow.contracts.trajectory import Gap
from gymflow.errors import InputError
from gymflow.interop.observing import Observer
from gymflow.runtime.conversations import Conversation
from gymflow.runtime.rollout import total_usage
from gymflow.secrets import Redactor, mask
from gymflow.store import RunWriter, Store, rollout_id

log = logging.getLogger(__name__)

SERVED = "served"
"""Environment, split and agent of what was captured, and the harness that nobody here knows."""


class Captured:
    """Writes the run. It is made with the first conversation, so that a gateway that nobody called leaves none."""

    def __init__(self, store: Store, run_id: str, spec: ModelSpec, identity: ModelIdentity, redactor: Redactor) -> None:
        self.run_id = run_id
        self.count = 0
        self._store, self._spec, self._identity, self._redactor = store, spec, identity, redactor
        self._stack = AsyncExitStack()
        self._writer: RunWriter | None = None
        self._tasks: dict[str, int] = {}
        self._repeats: dict[int, int] = defaultdict(int)
        self._rows: WeakKeyDictionary[Conversation, PlannedRollout] = WeakKeyDictionary()

    async def keep(self, conversations: list[Conversation]) -> None:
        """Make conversations durable as they stand; one that was kept before is replaced. Raises InputError when the disk does not
        take them."""
        tasks: list[PlannedTask] = []
        new = [one for one in conversations if one not in self._rows]
        planned = [self._planned(one, tasks) for one in new]
        if self._writer is None and planned:
            self._store.create_run(self._document(), tasks, planned)
            self._writer = await self._stack.enter_async_context(self._store.writer(self.run_id))
        elif planned:
            self._store.extend_plan(self.run_id, tasks, planned)
        self._rows.update(zip(new, planned, strict=True))
        for conversation in conversations:
            assert self._writer is not None
            try:
                await self._writer.commit(self._record(conversation, self._rows[conversation]), again=True)
            except InputError:
                raise
            except Exception:
                # One conversation that cannot be kept is no reason to lose the others.
                log.exception("a conversation of %d calls could not be kept", len(conversation.calls))

    async def close(self) -> None:
        """Commit what is written and release the run; idempotent."""
        if self._writer is not None:
            await self._writer.finish()
            self._writer = None
        await self._stack.aclose()

    def _planned(self, conversation: Conversation, tasks: list[PlannedTask]) -> PlannedRollout:
        """Conversations that began with the same request are repeats of one task."""
        first = conversation.calls[0]
        create: dict[str, Any] = {"input": first.new_input, "instructions": first.instructions}
        create["tools"] = self._redactor.json(conversation.tools) or None
        row = {"responses_create_params": {name: value for name, value in create.items() if value is not None}}
        try:
            task = Task.model_validate(row)
            digest, key = keys.row_digest(task), keys.task_key(task, None)
        except (TypeError, ValueError):  # what has no canonical form is told by the calls alone
            task = Task()
            digest, key = keys.row_digest(task), keys.task_key(task, None)
        index = self._tasks.get(digest)
        if index is None:
            index = self._tasks[digest] = len(self._tasks)
            tasks.append(
                PlannedTask(
                    task_index=index,
                    task_key=key,
                    row_digest=digest,
                    environment=SERVED,
                    split=SERVED,
                    task_id=str(index),
                    tags=[],
                    cluster=None,
                    task=task.model_dump(mode="python", exclude_none=True),
                )
            )
        repeat, number = self._repeats[index], self.count
        self._repeats[index] += 1
        self.count += 1
        return PlannedRollout(
            plan_index=number,
            task_index=index,
            task_key=key,
            task_id=str(index),
            environment=SERVED,
            split=SERVED,
            agent=SERVED,
            repeat=repeat,
            seed=None,
            chunk=0,
            rollout_key=keys.digest([SERVED, self.run_id, number]),
        )

    def _record(self, conversation: Conversation, planned: PlannedRollout) -> RolloutRecord:
        observer = Observer()
        observer.calls = conversation.calls
        trajectory = observer.trajectory()
        trajectory.gaps = [Gap(code="no_tool_timing", detail="only the model calls of this agent were observed")]
        answered = [call for call in conversation.calls if call.status == "ok"]
        last = conversation.calls[-1]
        trajectory.stop_reason = StopReason.FINISHED if answered else None
        evidence = EvidenceRecord(trajectory=trajectory, response={"output": answered[-1].output if answered else []})
        return RolloutRecord(
            rollout=Rollout(
                run_id=self.run_id,
                rollout_id=rollout_id(self.run_id, planned.plan_index),
                rollout_key=planned.rollout_key,
                plan_index=planned.plan_index,
                task_key=planned.task_key,
                task_id=planned.task_id,
                repeat=planned.repeat,
                environment=SERVED,
                split=SERVED,
                agent=SERVED,
                model=self._spec.model,
                seed=None,
                status=Status.COMPLETED if answered else Status.FAILED,
                stop_reason=trajectory.stop_reason,
                failure=None if answered else last.error_kind or FailureKind.HARNESS_ERROR,
                failure_message=None if answered else last.error_message,
                started_at=conversation.began,
                duration_s=max(0.0, last.started_at + last.queue_s + last.duration_s - conversation.began),
                turns=len(trajectory.turns),
                model_calls=len(conversation.calls),
                tool_calls=sum(len(turn.tool_calls) for turn in trajectory.turns),
                usage=total_usage(conversation.calls),
                cost_usd=conversation.client.cost_usd,
                sampled_in=self.run_id,
                evidence_digest=keys.evidence_digest(evidence),
            ),
            evidence=evidence,
            model_calls=conversation.calls,
        )

    def _document(self) -> RunDocument:
        manifest = Manifest(
            name=SERVED,
            version="0",
            description="Model calls of programs that gymflow did not run.",
            domain=SERVED,
            licence="NOASSERTION",
            datasets={},
            verifier=ComponentRef(name="recorded"),
            pass_threshold=1.0,
        )
        sampling = ("harness", "prompt", "sampling", "dataset", "environment", "engine")
        return RunDocument(
            run_id=self.run_id,
            name=f"{SERVED} {self._spec.model}".strip(),
            created_at=time.time(),
            config=RunConfig(
                environments=[EnvironmentSelection(name=SERVED)],
                models={"policy": ModelSpec.model_validate(mask(self._spec))},
                seed=None,
            ),
            fingerprint=Fingerprint(
                sampling={name: keys.digest([SERVED, self.run_id]) for name in sampling}
                | {"model": keys.digest(self._identity.model_dump(mode="json")), "sandbox": keys.digest(None)},
                scoring={"verifier": keys.digest(SERVED), "judge": keys.digest(None)},
            ),
            environments={SERVED: EnvironmentOfRun(reference="", split=SERVED, manifest=manifest)},
            agents={SERVED: {SERVED: AgentSpec(harness=ComponentRef(name=SERVED), model="policy")}},
            identities={"policy": self._identity},
            versions={"gymflow": __version__},
        )
