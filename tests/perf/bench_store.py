"""What the store costs: `python tests/perf/bench_store.py [N]`.

Prints CPU (user + system, threads included) and wall time per rollout for committing and converting N single-turn rollouts with
their verdicts, at full speed and at the pace of a real run, then what reading them back takes.
"""

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gymflow.contracts.outcome import Status, StopReason
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import EvidenceRecord, Rollout, RolloutRecord
from gymflow.contracts.run import EnvironmentSelection, Fingerprint, RunConfig, RunDocument, VerdictSet
from gymflow.contracts.trajectory import ModelCall, Trajectory, Turn, Usage
from gymflow.contracts.verdict import Judged, Verdict, VerdictRecord
from gymflow.store import Store, connect, rollout_id

CONCURRENCY = 256
PACE = 600.0
"""Rollouts a second of the paced measurement."""
JUDGED = Judged(verifier="mcqa", version="1", code_digest="c" * 64, parameter_digest="d" * 64)


@contextmanager
def measured(what: str, count: int) -> Iterator[None]:
    """Print wall and CPU time of the block."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<44} {wall:7.2f} s   {1e3 * cpu / count:7.4f} ms CPU each   {count / wall:9.0f}/s")


def planned(count: int) -> Iterator[PlannedRollout]:
    """The plan of a run of `count` tasks, one rollout each."""
    for index in range(count):
        yield PlannedRollout(
            plan_index=index,
            task_index=index,
            task_key=f"{index:064x}",
            task_id=f"q{index}",
            environment="mcqa",
            split="test",
            agent="policy",
            repeat=0,
            seed=index,
            chunk=index // 256,
            rollout_key=f"{index + (1 << 200):064x}",
        )


def tasks(count: int) -> Iterator[PlannedTask]:
    """Their tasks."""
    for index in range(count):
        yield PlannedTask(
            task_index=index,
            task_key=f"{index:064x}",
            row_digest=f"{index:064x}",
            environment="mcqa",
            split="test",
            task_id=f"q{index}",
            tags=[],
            cluster=None,
            task={
                "question": "Which of these is it? " * 8,
                "options": [{"A": "one"}, {"B": "two"}],
                "expected_answer": "A",
            },
        )


def record(run_id: str, row: PlannedRollout) -> RolloutRecord:
    """One single-turn rollout as a run would commit it."""
    prompt = [
        {"type": "message", "role": "system", "content": 'Think first, then end with "The answer is (X)".'},
        {
            "type": "message",
            "role": "user",
            "content": f"{row.task_id}: " + "Which of these is it, and why is it so? " * 8,
        },
    ]
    text = (
        f"Let me see: {row.plan_index} "
        + "it follows from the second law that this holds, hence " * 8
        + "The answer is (A)."
    )
    said: list[dict[str, Any]] = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}
    ]
    usage = Usage(prompt_tokens=150, completion_tokens=110)
    return RolloutRecord(
        rollout=Rollout(
            run_id=run_id,
            rollout_id=rollout_id(run_id, row.plan_index),
            rollout_key=row.rollout_key,
            plan_index=row.plan_index,
            task_key=row.task_key,
            task_id=row.task_id,
            repeat=0,
            environment="mcqa",
            split="test",
            agent="policy",
            model="policy",
            seed=row.seed,
            status=Status.COMPLETED,
            stop_reason=StopReason.FINISHED,
            started_at=1.7e9 + row.plan_index / 100,
            duration_s=0.213,
            turns=1,
            model_calls=1,
            usage=usage,
            sampled_in=run_id,
            evidence_digest="e" * 64,
        ),
        evidence=EvidenceRecord(
            trajectory=Trajectory(turns=[Turn(index=0, model_call=0)], stop_reason=StopReason.FINISHED),
            response={"output": said},
        ),
        model_calls=[
            ModelCall(
                index=0,
                turn=0,
                new_input=prompt,
                parameters={"temperature": 1.0, "max_output_tokens": 512, "seed": row.seed},
                output=said,
                model="stand-in",
                reported_model="stand-in-1",
                response_id=f"resp_{row.plan_index}",
                http_status=200,
                finish_reason="stop",
                started_at=1.7e9,
                duration_s=0.2,
                usage=usage,
            )
        ],
    )


def verdict(run_id: str, index: int, verdict_set: str) -> VerdictRecord:
    """Its verdict."""
    return VerdictRecord(
        run_id=run_id,
        rollout_id=rollout_id(run_id, index),
        verdict_set=verdict_set,
        verdict_key=f"{index:064x}",
        verdict=Verdict(reward=float(index % 2), extracted_answer="A"),
        passed=index % 2 == 1,
        duration_s=0.0001,
        judged=JUDGED,
    )


def new_run(store: Store, run_id: str, count: int) -> None:
    """A run with its plan."""
    store.create_run(
        RunDocument(
            run_id=run_id,
            name="bench",
            created_at=time.time(),
            config=RunConfig(environments=[EnvironmentSelection(name="mcqa")]),
            fingerprint=Fingerprint(sampling={}, scoring={}),
            environments={},
            agents={},
            identities={},
            versions={},
        ),
        tasks(count),
        planned(count),
    )


async def sample(store: Store, run_id: str, count: int, pace: float | None) -> None:
    """Commit a whole run, `pace` rollouts a second; None: as fast as it goes."""
    records = [record(run_id, row) for row in planned(count)]
    verdicts = [verdict(run_id, index, "first") for index in range(count)]
    label = "at full speed" if pace is None else f"at {pace:.0f}/s"
    async with store.writer(run_id) as writer:
        await writer.add_verdict_set(VerdictSet(name="first", created_at=0.0, judged={"mcqa": JUDGED}))
        gc.freeze()  # a run does not keep its records, so collecting them is none of its costs
        todo = iter(range(count))
        began = time.perf_counter()

        async def commit_some() -> None:
            for index in todo:
                if pace is not None:
                    await asyncio.sleep(max(0.0, index / pace - (time.perf_counter() - began)))
                await writer.commit(records[index], [verdicts[index]])

        with measured(f"commit {count} rollouts {label}", count):
            await asyncio.gather(*(commit_some() for _ in range(CONCURRENCY)))
        with measured("convert the rest and merge", count):
            await writer.finish()


async def rescore(store: Store, run_id: str, count: int) -> None:
    """Read all evidence to its last line and write a second verdict set."""
    async with store.writer(run_id) as writer:
        await writer.add_verdict_set(VerdictSet(name="second", created_at=1.0, judged={"mcqa": JUDGED}))
        with measured(f"rescore {count}: read, then commit verdicts", count):
            for batch in store.run(run_id).stored():
                rows = []
                for stored in batch:
                    assert stored.task["expected_answer"] in stored.evidence.final_text
                    rows.append(verdict(run_id, stored.plan_index, "second"))
                await writer.commit_verdicts(rows)
        with measured("convert the rest and merge", count):
            await writer.finish()


def calibrate() -> None:
    """How fast this process is right now: on an idle machine of the notes json reads some 170 MB a CPU second."""
    text = json.dumps([{"index": index, "text": "words " * 20, "numbers": [1.5, 2.5]} for index in range(20_000)])
    cpu = time.process_time()
    json.loads(text)
    print(f"calibration: json.loads {len(text) / 1e6 / (time.process_time() - cpu):.0f} MB per CPU second")


async def main(count: int) -> None:
    calibrate()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with measured(f"create a run of {count} rollouts", count):
            new_run(store, "fast", count)
        await sample(store, "fast", count, None)
        paced = min(count, 3000)
        new_run(store, "paced", paced)
        await sample(store, "paced", paced, PACE)
        with measured("decide what is completed", count):
            assert len(store.run("fast").completed()) == count
        await rescore(store, "fast", count)
        with connect(store.root) as connection:
            for view in ("outcomes", "runs", "turns"):
                with measured(f"select count(*) from {view}", count):
                    connection.execute(f"select count(*) from {view}").fetchall()
            with measured("mean reward by agent, current verdict set", count):
                connection.execute("select agent, avg(reward) from outcomes where is_current group by agent").fetchall()
        size = sum(path.stat().st_size for path in Path(folder, "runs", "fast").rglob("*") if path.is_file())
        print(f"bytes on disk per rollout: {size / count:.0f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
