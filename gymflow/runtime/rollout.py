"""One planned rollout, from a fresh session to the record that the store keeps."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from gymflow import keys
from gymflow.canonical import canonical_json
from gymflow.contracts.outcome import RETRYABLE, FailureKind, Status, StopReason
from gymflow.contracts.plan import PlannedRollout
from gymflow.contracts.rollout import Attempt, EvidenceRecord, Rollout, RolloutRecord
from gymflow.contracts.run import Budgets, Limits
from gymflow.contracts.task import Task
from gymflow.contracts.trajectory import ModelCall, Trajectory, Usage
from gymflow.contracts.verdict import VerdictRecord
from gymflow.environments import Session, Snapshot
from gymflow.errors import RolloutFailure, RunIncomplete, StopEpisode
from gymflow.models.base import ModelRequest
from gymflow.models.client import ModelClient
from gymflow.models.gateway import Gateway
from gymflow.runtime.components import RunAgent, RunEnvironment, RunTask
from gymflow.runtime.episode import Episode, asked
from gymflow.runtime.plugins import own_doing
from gymflow.runtime.sandboxing import EpisodeSandbox, episode_sandbox
from gymflow.runtime.scoring import score
from gymflow.sandboxes.labels import ROLLOUT, RUN
from gymflow.secrets import Redactor
from gymflow.store.layout import rollout_id
from gymflow.verifiers import Evidence


@dataclass(slots=True)
class Player:
    """Plays and scores the rollouts of one run. `put_artifact` stores bytes and returns their digest, `read_artifact` finds them
    again. `drift` is what a run samples with that accepted to differ from its plan: it becomes part of the rollout keys, so that
    these samples never serve for what the plan asked."""

    run_id: str
    gateway: Gateway
    budgets: Budgets
    limits: Limits
    put_artifact: Callable[[bytes], Awaitable[str]]
    read_artifact: Callable[[str], bytes]
    verdict_set: str
    drift: str | None = None
    weight_version: str | None = None

    async def sample(
        self, planned: PlannedRollout, task: RunTask, environment: RunEnvironment, agent: RunAgent
    ) -> tuple[RolloutRecord, VerdictRecord | None]:
        """A rollout and its verdict; None where infrastructure failed the rollout."""
        record = await self.play(planned, task, environment, agent)
        if record.rollout.status is Status.FAILED:
            return record, None
        return record, await self.judge(record, task, environment)

    async def judge(self, record: RolloutRecord, task: RunTask, environment: RunEnvironment) -> VerdictRecord:
        """The verdict on a completed rollout."""
        verdict = await score(
            run_id=self.run_id,
            rollout_id=record.rollout.rollout_id,
            verdict_set=self.verdict_set,
            task=task,
            evidence=Evidence.of(record.evidence, self.read_artifact),
            evidence_digest=record.rollout.evidence_digest,
            environment=environment,
            timeout_s=self.limits.verifier_timeout_s,
        )
        if verdict.failure_message is None:
            return verdict
        return verdict.model_copy(update={"failure_message": self.gateway.redactor.text(verdict.failure_message)})

    async def play(
        self, planned: PlannedRollout, task: RunTask, environment: RunEnvironment, agent: RunAgent
    ) -> RolloutRecord:
        """Attempts until one completes or none may be made any more. Raises RunIncomplete when the run has to end."""
        started = time.time()
        attempts: list[Attempt] = []
        while True:
            attempt = _Attempt(self, planned, task, environment, agent)
            begun = time.time()
            try:
                await attempt.run()
                failure: RolloutFailure | None = None
            except RolloutFailure as error:
                failure = error
                message = self.gateway.redactor.text(error.message)
                attempts.append(
                    Attempt(failure=error.kind, message=message, started_at=begun, duration_s=time.time() - begun)
                )
            if failure is None or failure.kind not in RETRYABLE or len(attempts) >= self.limits.max_attempts:
                return await attempt.record(started, attempts, failure)
            await asyncio.sleep(random.uniform(0.5, 1.0) * 2 ** (len(attempts) - 1))


@dataclass(slots=True)
class _Attempt:
    player: Player
    planned: PlannedRollout
    prepared: RunTask
    environment: RunEnvironment
    agent: RunAgent
    trajectory: Trajectory = field(default_factory=Trajectory)
    snapshot: Snapshot | None = None
    collected: dict[str, bytes] = field(default_factory=dict)
    client: ModelClient | None = None

    @property
    def task(self) -> Task:
        return self.prepared.task

    async def run(self) -> None:
        """Play the episode and take the snapshot, also when the agent failed or ran out of budget."""
        player = self.player
        self.client = player.gateway.client(self.agent.model, seed=self.planned.seed, budgets=player.budgets)
        session = self._open_session()
        try:
            async with self._sandbox() as sandbox:
                episode = Episode(
                    task=self.task,
                    session=session,
                    client=self.client,
                    request=model_request(self.task, self.agent),
                    budgets=player.budgets,
                    environment_timeout_s=player.limits.environment_timeout_s,
                    sandbox=sandbox,
                )
                self.trajectory = episode.trajectory
                await episode.start()
                await self._play(episode)
                if not self.environment.stateless:
                    self.snapshot = await _snapshot(session, player.limits.environment_timeout_s)
                if sandbox is not None:
                    self.collected, gaps = await sandbox.collect()
                    self.trajectory.gaps += gaps
                    if self.recorded and self.prepared.fields is not None:
                        seen, gaps = await sandbox.observed(self.environment.verifier, self.prepared.fields)
                        self.collected |= seen
                        self.trajectory.gaps += gaps
        finally:
            if not self.environment.stateless:
                await _closed(session, player.limits.environment_timeout_s)

    def _sandbox(self) -> AbstractAsyncContextManager[EpisodeSandbox | None]:
        spec = self.environment.sandbox(self.task, self.agent.harness)
        if spec is None:
            return nullcontext()
        labels = {RUN: self.player.run_id, ROLLOUT: rollout_id(self.player.run_id, self.planned.plan_index)}
        lodging = self.agent.harness.lodging()
        return episode_sandbox(
            spec, self.environment.manifest.collects, labels=labels, lodging=lodging, cleared=self.recorded
        )

    @property
    def recorded(self) -> bool:
        """Whether the verifier judges what it sees in the agent's own sandbox."""
        return self.environment.verifier.rerun == "recorded"

    def _open_session(self) -> Session:
        try:
            return self.environment.open_session(self.task, self.planned.seed or 0)
        except (Exception, SystemExit) as error:
            message = f"the session could not be made: {type(error).__name__}: {error}"
            raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message, cause=error) from error

    async def _play(self, episode: Episode) -> None:
        deadline = asyncio.timeout(self.player.budgets.wall_time_s)
        try:
            async with deadline:
                await self.agent.harness.run(episode)
        except StopEpisode as stop:
            episode.stop(stop.reason, stop.detail)
        except (RolloutFailure, RunIncomplete):
            raise
        except BaseException as error:
            if not own_doing(error):
                raise
            cause = f"{type(error).__name__}: {error}"
            if deadline.expired():
                # What an agent raises after its deadline is noted, but the deadline is why it ended.
                note = "" if isinstance(error, TimeoutError) else f"; then {cause}"
                episode.stop(StopReason.WALL_TIME, f"{self.player.budgets.wall_time_s:g} s{note}")
            else:
                message = f"harness {type(self.agent.harness).__name__}: {cause}"
                raise RolloutFailure(FailureKind.HARNESS_ERROR, message, cause=error) from error
        last = episode.last
        if last is not None and last.finish_reason == "length":
            episode.stop(StopReason.MAX_OUTPUT_TOKENS)
        elif last is not None and last.finish_reason in ("content_filter", "refusal"):
            episode.stop(StopReason.REFUSAL, last.finish_reason)
        else:
            episode.stop(StopReason.FINISHED)

    async def _stored(self, content: bytes) -> str:
        return await self.player.put_artifact(self.player.gateway.redactor.data(content))

    async def record(self, started: float, attempts: list[Attempt], failure: RolloutFailure | None) -> RolloutRecord:
        """What the rollout leaves behind."""
        calls = self.client.calls if self.client else []
        planned, trajectory, drift = self.planned, self.trajectory, self.player.drift
        if failure is not None:
            trajectory.stop_reason = None
        artifacts = {**self.collected, **(self.snapshot.artifacts if self.snapshot else {})}
        evidence = EvidenceRecord(
            trajectory=trajectory,
            response={"output": _last_output(calls)},
            snapshot=self.snapshot.state if self.snapshot else None,
            artifacts={name: await self._stored(content) for name, content in artifacts.items()},
        )
        redactor = self.player.gateway.redactor
        evidence, written = without_secrets(evidence, redactor)
        return RolloutRecord(
            rollout=Rollout(
                run_id=self.player.run_id,
                rollout_id=rollout_id(self.player.run_id, planned.plan_index),
                rollout_key=planned.rollout_key if drift is None else keys.digest([planned.rollout_key, drift]),
                plan_index=planned.plan_index,
                task_key=planned.task_key,
                task_id=planned.task_id,
                repeat=planned.repeat,
                environment=planned.environment,
                split=planned.split,
                agent=planned.agent,
                model=self.agent.model,
                seed=planned.seed,
                status=Status.COMPLETED if failure is None else Status.FAILED,
                stop_reason=trajectory.stop_reason,
                failure=failure.kind if failure else None,
                failure_message=redactor.text(failure.message) if failure else None,
                started_at=started,
                duration_s=time.time() - started,
                turns=len(trajectory.turns),
                model_calls=len(calls),
                tool_calls=sum(len(turn.tool_calls) for turn in trajectory.turns),
                usage=total_usage(calls),
                cost_usd=self.client.cost_usd if self.client else None,
                sampled_in=self.player.run_id,
                evidence_digest=keys.evidence_digest(written),
                weight_version=self.player.weight_version,
            ),
            evidence=evidence,
            model_calls=calls,
            attempts=attempts,
        )


def without_secrets(evidence: EvidenceRecord, redactor: Redactor) -> tuple[EvidenceRecord, bytes]:
    """Evidence in which no tool output, snapshot or message shows a known secret, and its JSON."""
    written = keys.evidence_json(evidence)
    if not redactor.found_in(written):
        return evidence, written
    clean = EvidenceRecord.model_validate(redactor.json(evidence.model_dump(mode="json")))
    return clean, keys.evidence_json(clean)


def model_request(task: Task, agent: RunAgent) -> ModelRequest:
    """The task's create parameters as the request that each turn extends. The run's sampling wins over the row's."""
    create = task.responses_create_params
    row = {name: getattr(create, name) for name in ("temperature", "top_p", "max_output_tokens")}
    changes = {
        name: value for name, value in row.items() if value is not None and getattr(agent.sampling, name) is None
    }
    further = create.model_extra or {}
    return ModelRequest(
        input=list(create.input) if isinstance(create.input, list) else [],
        tools=list(create.tools or []),
        instructions=create.instructions,
        sampling=agent.sampling.model_copy(update=changes) if changes else agent.sampling,
        tool_choice=create.tool_choice,
        parallel_tool_calls=create.parallel_tool_calls,
        text=further.get("text"),
        reasoning=further.get("reasoning"),
    )


def total_usage(calls: list[ModelCall]) -> Usage:
    """Sums over the calls; a kind of token that none of them reported stays None."""
    if len(calls) == 1:
        return calls[0].usage
    total = Usage()
    for call in calls:
        for name, value in call.usage:
            if value is not None:
                setattr(total, name, (getattr(total, name) or 0) + value)
    return total


def _last_output(calls: list[ModelCall]) -> list[dict[str, object]]:
    return next((call.output for call in reversed(calls) if call.status == "ok" and call.role == "policy"), [])


async def _snapshot(session: Session, timeout_s: float) -> Snapshot | None:
    """The session's state; one that has no JSON form is the session's fault, like one that it cannot give."""
    snapshot = await asked(session.snapshot(), "snapshot", timeout_s)
    if snapshot is not None:
        try:
            canonical_json(snapshot.state)
        except ValueError as error:
            message = f"the session's snapshot has no JSON form: {error}"
            raise RolloutFailure(FailureKind.ENVIRONMENT_ERROR, message, cause=error) from error
    return snapshot


async def _closed(session: Session, timeout_s: float) -> None:
    """Close the session. What goes wrong here cannot undo the episode, so it is not allowed to hide how that ended."""
    try:
        async with asyncio.timeout(timeout_s):
            await session.close()
    except BaseException as error:
        if not own_doing(error):
            raise
