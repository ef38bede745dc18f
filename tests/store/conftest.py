"""Builders of runs, rollouts and verdicts, and file layers that fail or die at a chosen operation."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import Attempt, EvidenceRecord, Rollout, RolloutRecord
from gymflow.contracts.run import EnvironmentSelection, Fingerprint, RunConfig, RunDocument, VerdictSet
from gymflow.contracts.trajectory import CallTokens, ModelCall, Step, ToolCall, Trajectory, Turn, Usage
from gymflow.contracts.verdict import Judged, Verdict, VerdictRecord
from gymflow.store import Store, rollout_id
from gymflow.store.files import Files

JUDGED = Judged(verifier="mcqa", version="1", code_digest="c" * 64, parameter_digest="d" * 64)


class Build:
    """Records as a run would make them."""

    judged = JUDGED

    def document(self, run_id: str, created_at: float = 1.0) -> RunDocument:
        return RunDocument(
            run_id=run_id,
            name=run_id,
            created_at=created_at,
            config=RunConfig(environments=[EnvironmentSelection(name="mcqa")]),
            fingerprint=Fingerprint(sampling={"model": "m"}, scoring={"verifier": "v"}),
            environments={},
            agents={},
            identities={},
            versions={"gymflow": "0"},
        )

    def task(self, index: int, task: dict[str, Any] | None = None) -> PlannedTask:
        return PlannedTask(
            task_index=index,
            task_key=f"task{index}",
            row_digest=f"row{index}",
            environment="mcqa",
            split="test",
            task_id=f"q{index}",
            tags=["easy"],
            cluster=None,
            task=task or {"question": f"question {index}", "expected_answer": "A"},
        )

    def planned(self, index: int) -> PlannedRollout:
        return PlannedRollout(
            plan_index=index,
            task_index=index,
            task_key=f"task{index}",
            task_id=f"q{index}",
            environment="mcqa",
            split="test",
            agent="policy",
            repeat=0,
            seed=index,
            chunk=index // 4,
            rollout_key=f"key{index}",
        )

    def run(self, store: Store, run_id: str, count: int, created_at: float = 1.0) -> None:
        store.create_run(
            self.document(run_id, created_at), map(self.task, range(count)), map(self.planned, range(count))
        )

    def record(
        self,
        run_id: str,
        index: int,
        *,
        status: Status = Status.COMPLETED,
        text: str = "The answer is (A).",
        tokens: int = 10,
        snapshot: dict[str, Any] | None = None,
        calls: list[ModelCall] | None = None,
    ) -> RolloutRecord:
        failed = status is Status.FAILED
        said: list[dict[str, Any]] = [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        ]
        call = ModelCall(
            index=0,
            turn=0,
            new_input=[{"type": "message", "role": "user", "content": f"question {index}"}],
            parameters={"temperature": 1.0},
            output=said,
            model="stand-in",
            finish_reason="stop",
            started_at=1.0,
            usage=Usage(prompt_tokens=tokens, completion_tokens=tokens),
            tokens=CallTokens(
                chained=False, prompt_token_ids=[1, 2], completion_token_ids=[3], logprobs=[-0.123456789012345]
            ),
        )
        tool = ToolCall(call_id="c0", name="look", arguments='{"at": 1}', output="seen", started_at=1.0, ended_at=1.5)
        planned = self.planned(index)
        return RolloutRecord(
            rollout=Rollout(
                run_id=run_id,
                rollout_id=rollout_id(run_id, index),
                rollout_key=planned.rollout_key,
                plan_index=index,
                task_key=planned.task_key,
                task_id=planned.task_id,
                repeat=0,
                environment="mcqa",
                split="test",
                agent="policy",
                model="policy",
                seed=index,
                status=status,
                stop_reason=None if failed else StopReason.FINISHED,
                failure=FailureKind.MODEL_UNREACHABLE if failed else None,
                failure_message="connection refused" if failed else None,
                started_at=1.0 + index,
                duration_s=0.5,
                turns=1,
                model_calls=1,
                tool_calls=1,
                usage=Usage(prompt_tokens=tokens, completion_tokens=tokens),
                sampled_in=run_id,
                evidence_digest=f"evidence{index}",
            ),
            evidence=EvidenceRecord(
                trajectory=Trajectory(
                    turns=[Turn(index=0, model_call=0, tool_calls=[tool], step=Step(reward=0.5, done=True))],
                    stop_reason=None if failed else StopReason.FINISHED,
                ),
                response={"output": said},
                snapshot=snapshot,
            ),
            model_calls=[call] if calls is None else calls,
            attempts=[Attempt(failure=FailureKind.MODEL_UNREACHABLE, message="refused", started_at=1.0, duration_s=0.1)]
            if failed
            else [],
        )

    def verdict(
        self, run_id: str, index: int, *, reward: float | None = 1.0, verdict_set: str = "first", **verdict: Any
    ) -> VerdictRecord:
        return VerdictRecord(
            run_id=run_id,
            rollout_id=rollout_id(run_id, index),
            verdict_set=verdict_set,
            verdict_key=f"verdict{index}",
            verdict=None if reward is None else Verdict(reward=reward, extracted_answer="A", **verdict),
            failure="verifier_error" if reward is None else None,
            passed=None if reward is None else reward >= 1.0,
            duration_s=0.001,
            judged=JUDGED,
        )

    def verdict_set(self, name: str = "first", refers_to: str | None = None, judged: Judged = JUDGED) -> VerdictSet:
        return VerdictSet(name=name, created_at=1.0, judged={"mcqa": judged}, refers_to=refers_to)


class UnsyncedFiles(Files):
    """Does not wait for the medium, which no test can tell: they run ten times as fast."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_file(self, path: Path) -> None:
        pass


class HookedFiles(UnsyncedFiles):
    """Calls `hook(operation, number, path or descriptor, data)` before every operation that changes the store."""

    def __init__(self, hook: Callable[[str, int, Any, bytes | None], None]) -> None:
        self._hook = hook
        self.count = 0

    def _before(self, operation: str, target: Any, data: bytes | None = None) -> None:
        self.count += 1
        self._hook(operation, self.count, target, data)

    def append_to(self, path: Path) -> int:
        self._before("append_to", path)
        return super().append_to(path)

    def write(self, descriptor: int, data: bytes) -> None:
        self._before("write", descriptor, data)
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self._before("sync", descriptor)
        super().sync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        self._before("truncate", descriptor)
        super().truncate(descriptor, size)

    def sync_file(self, path: Path) -> None:
        self._before("sync_file", path)
        super().sync_file(path)

    def rename(self, source: Path, target: Path) -> None:
        self._before("rename", target)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._before("remove", path)
        super().remove(path)


def full_disk_after(operations: int) -> HookedFiles:
    """Writes fail with ENOSPC from the n-th operation on, each after half of its data went through."""

    def hook(operation: str, number: int, target: Any, data: bytes | None) -> None:
        if operation == "write" and number >= operations:
            if data:
                os.write(target, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    return HookedFiles(hook)


def dying_at(nth: int, power_loss: bool = False) -> HookedFiles:
    """The process is gone at the n-th operation. Of a write, half has arrived; when the power fails (at a write or a sync, where
    that differs), half of everything that was not synced. Syncs of finished files are passed over: nothing follows from them
    before the next rename."""
    operations = ("write", "sync") if power_loss else ("append_to", "write", "sync", "truncate", "rename", "remove")
    countdown = [nth]
    unsynced: dict[int, tuple[int, int]] = {}

    def hook(operation: str, number: int, target: Any, data: bytes | None) -> None:
        countdown[0] -= operation in operations
        if operation in operations and countdown[0] == 0:
            if operation == "write" and data:
                os.write(target, data[: len(data) // 2])
            if power_loss:
                for descriptor, (size, written) in unsynced.items():
                    with contextlib.suppress(OSError):
                        os.ftruncate(descriptor, size + written // 2)
            os._exit(77)
        if operation == "write" and data:
            size, written = unsynced.get(target, (os.fstat(target).st_size, 0))
            unsynced[target] = (size, written + len(data))
        elif operation == "sync":
            unsynced.pop(target, None)

    return HookedFiles(hook)


@pytest.fixture
def build() -> Build:
    return Build()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", files=UnsyncedFiles())


@pytest.fixture(autouse=True)
def no_spacing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushes follow each other at once."""
    monkeypatch.setattr("gymflow.store.journal.SPACING_S", 0.0)


@pytest.fixture
def hooked() -> type[HookedFiles]:
    return HookedFiles


@pytest.fixture
def full_disk() -> Callable[[int], HookedFiles]:
    return full_disk_after


@pytest.fixture
def dying() -> Callable[[int, bool], HookedFiles]:
    return dying_at


@pytest.fixture
def small_journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Segments are converted after every few rollouts instead of every 64 MB."""
    monkeypatch.setattr("gymflow.store.writer.ROLL_BYTES", 6000)
    yield
