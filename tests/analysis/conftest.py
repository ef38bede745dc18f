"""Runs whose every rollout is known: healthy records of the real mcqa environment, changed where a test says so."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.outcome import FailureKind, Status, StopReason
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
from gymflow.contracts.trajectory import ModelCall, ToolCall, Trajectory, Turn, Usage
from gymflow.contracts.verdict import Verdict, VerdictRecord
from gymflow.registry import Registry
from gymflow.runtime.components import RunEnvironment, run_environment
from gymflow.runtime.rollout import total_usage
from gymflow.store import Store, rollout_id
from gymflow.verifiers import Evidence

LETTERS = "ABCD"


@dataclass
class Said:
    """One turn: what the model wrote and the tools it called."""

    text: str = ""
    tools: Sequence[ToolCall] = ()
    finish: str = "stop"
    tokens: int = 20


@dataclass
class Sample:
    """One rollout. `failed`: infrastructure's failure; `missing`: nothing is stored; `change` edits the finished record."""

    turns: Sequence[Said] = ()
    stop: StopReason = StopReason.FINISHED
    failed: FailureKind | None = None
    missing: bool = False
    change: Callable[[RolloutRecord], None] = lambda record: None
    verdict: Callable[[VerdictRecord], VerdictRecord] = lambda verdict: verdict


def answering(letter: str, **fields: Any) -> Sample:
    """A rollout that ends with that choice, in words of its own."""
    return Sample([Said(f"I thought about it. The answer is ({letter}).")], **fields)


def tool(name: str = "look", arguments: str = '{"at": 1}', output: str = "seen", **fields: Any) -> ToolCall:
    """A tool call that took half a second."""
    fields = {"started_at": 100.0, "ended_at": 100.5} | fields
    return ToolCall(call_id="c", name=name, arguments=arguments, output=output, **fields)


@dataclass
class Planter:
    """Writes runs of given samples; the gold answer of task i is the i-th letter in turn."""

    store: Store
    environment: RunEnvironment = field(init=False)
    reference: str = "mcqa"

    def __post_init__(self) -> None:
        registry = Registry()
        entry = registry.environment(self.reference)
        self.environment = run_environment(registry, entry, entry.manifest, None)

    def gold(self, task: int) -> str:
        """The right choice."""
        return LETTERS[task % 4]

    def wrong(self, task: int, by: int = 1) -> str:
        """Another one."""
        return LETTERS[(task + by) % 4]

    def run(self, run_id: str, tasks: Sequence[Sequence[Sample]], **document: Any) -> str:
        """A run with one list of repeats for each task."""
        asyncio.run(self._write(run_id, tasks, document))
        return run_id

    async def _write(self, run_id: str, tasks: Sequence[Sequence[Sample]], document: dict[str, Any]) -> None:
        samples = [(index, repeat, one) for index, repeats in enumerate(tasks) for repeat, one in enumerate(repeats)]
        planned = [self._planned(at, index, repeat) for at, (index, repeat, _) in enumerate(samples)]
        self.store.create_run(self._document(run_id, document), map(self._task, range(len(tasks))), planned)
        chosen = VerdictSet(name="first", created_at=1.0, judged={"mcqa": self.environment.judged})
        async with self.store.writer(run_id) as writer:
            await writer.add_verdict_set(chosen)
            for row, (index, repeat, sample) in zip(planned, samples, strict=True):
                if not sample.missing:
                    record = self._record(run_id, row, sample, repeat)
                    verdicts = [] if sample.failed else [sample.verdict(await self._verdict(record, index))]
                    await writer.commit(record, verdicts)
            await writer.finish()

    def _document(self, run_id: str, changes: dict[str, Any]) -> RunDocument:
        fields: dict[str, Any] = {
            "run_id": run_id,
            "name": run_id,
            "created_at": 1.0,
            "config": RunConfig(environments=[EnvironmentSelection(name="mcqa")]),
            "fingerprint": Fingerprint(sampling={"model": "m"}, scoring={"verifier": "v"}),
            "environments": {
                "mcqa": EnvironmentOfRun(reference=self.reference, split="test", manifest=self.environment.manifest)
            },
            "agents": {},
            "identities": {},
            "versions": {"gymflow": "0"},
        }
        return RunDocument(**(fields | changes))

    def _row(self, index: int) -> dict[str, Any]:
        options = {letter: f"{letter.lower()}{index} thing" for letter in LETTERS}
        return {
            "question": f"Question {index}?",
            "options": [{letter: text} for letter, text in options.items()],
            "expected_answer": self.gold(index),
        }

    def _task(self, index: int) -> PlannedTask:
        return PlannedTask(
            task_index=index,
            task_key=f"task{index}",
            row_digest=f"row{index}",
            environment="mcqa",
            split="test",
            task_id=f"q{index}",
            tags=[],
            cluster=None,
            task=self._row(index),
        )

    def _planned(self, at: int, index: int, repeat: int) -> PlannedRollout:
        return PlannedRollout(
            plan_index=at,
            task_index=index,
            task_key=f"task{index}",
            task_id=f"q{index}",
            environment="mcqa",
            split="test",
            agent="policy",
            repeat=repeat,
            seed=at,
            chunk=0,
            rollout_key=f"key{at}",
        )

    def _record(self, run_id: str, row: PlannedRollout, sample: Sample, repeat: int) -> RolloutRecord:
        calls = [self._call(at, said, row.task_index) for at, said in enumerate(sample.turns)]
        turns = [Turn(index=at, model_call=at, tool_calls=list(said.tools)) for at, said in enumerate(sample.turns)]
        stop = None if sample.failed else sample.stop
        record = RolloutRecord(
            rollout=Rollout(
                run_id=run_id,
                rollout_id=rollout_id(run_id, row.plan_index),
                rollout_key=row.rollout_key,
                plan_index=row.plan_index,
                task_key=row.task_key,
                task_id=row.task_id,
                repeat=repeat,
                environment="mcqa",
                split="test",
                agent="policy",
                model="policy",
                seed=row.seed,
                status=Status.FAILED if sample.failed else Status.COMPLETED,
                stop_reason=stop,
                failure=sample.failed,
                failure_message="connection refused" if sample.failed else None,
                started_at=99.0,
                duration_s=10.0,
                turns=len(turns),
                model_calls=len(calls),
                tool_calls=sum(len(turn.tool_calls) for turn in turns),
                usage=total_usage(calls),
                sampled_in=run_id,
                evidence_digest=f"{run_id}{row.plan_index}",
            ),
            evidence=EvidenceRecord(
                trajectory=Trajectory(turns=turns, stop_reason=stop),
                response={"output": calls[-1].output if calls else []},
            ),
            model_calls=calls,
        )
        sample.change(record)
        return record

    def _call(self, at: int, said: Said, index: int) -> ModelCall:
        output: list[dict[str, Any]] = []
        if said.text:
            content = [{"type": "output_text", "text": said.text}]
            output.append({"type": "message", "role": "assistant", "content": content})
        output += [
            {"type": "function_call", "call_id": one.call_id, "name": one.name, "arguments": one.arguments}
            for one in said.tools
        ]
        return ModelCall(
            index=at,
            turn=at,
            parent=at - 1 if at else None,
            new_input=[{"type": "message", "role": "user", "content": f"question {index}"}],
            parameters={"temperature": 1.0},
            output=output,
            model="stand-in",
            reported_model="stand-in",
            finish_reason=said.finish,
            started_at=100.0 + at,
            duration_s=0.5,
            usage=Usage(prompt_tokens=50, completion_tokens=said.tokens),
        )

    async def _verdict(self, record: RolloutRecord, index: int) -> VerdictRecord:
        verifier = self.environment.verifier
        task = verifier.task_fields.model_validate(self._row(index))
        verdict: Verdict = await verifier.verify(task, Evidence.of(record.evidence))
        return VerdictRecord(
            run_id=record.rollout.run_id,
            rollout_id=record.rollout.rollout_id,
            verdict_set="first",
            verdict_key=f"v{record.rollout.plan_index}",
            verdict=verdict,
            passed=verdict.reward >= 1.0,
            duration_s=0.001,
            judged=self.environment.judged,
        )


@pytest.fixture
def planter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planter:
    """Writes into a store of its own."""
    monkeypatch.setattr("gymflow.store.journal.SPACING_S", 0.0)
    return Planter(Store(tmp_path / "store"))
