"""The runner dies at every durable operation in turn: what it acknowledged is there, nothing is twice, no row is torn.

After SQLite's anomaly tests: run the operation with a failure at step 1, 2, 3, … until it completes.
"""

import asyncio
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.outcome import Status
from gymflow.store import Store, connect
from gymflow.store.files import Files

COUNT = 6
RESCORED = 1000
"""Acknowledgement of the second verdict set."""


def in_child(work: Callable[[Callable[[int], None]], None]) -> tuple[int, list[int]]:
    """Fork, do the work, and return its exit status with what it acknowledged before it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(lambda number: _tell(write, number))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    received = b""
    while True:
        if not select.select([read], [], [], 60)[0]:
            os.kill(child, signal.SIGKILL)
            raise AssertionError("the child hangs")
        if not (more := os.read(read, 4096)):
            break
        received += more
    os.close(read)
    _, status = os.waitpid(child, 0)
    numbers = [int.from_bytes(received[at : at + 4], "big") for at in range(0, len(received), 4)]
    return os.waitstatus_to_exitcode(status), numbers


def _tell(descriptor: int, number: int) -> None:
    os.write(descriptor, number.to_bytes(4, "big"))


async def play(store: Store, build: Any, acknowledge: Callable[[int], None]) -> None:
    """A run with a failed rollout that is repeated, a conversion in its middle, a rescoring and an end; also resumes one."""
    reader = store.run("r")
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set("first"))
        if writer.status(1) is None:
            await writer.commit(build.record("r", 1, status=Status.FAILED))
        for index in range(COUNT):
            if writer.status(index) is not Status.COMPLETED:
                await writer.commit(build.record("r", index, text=f"answer {index}"), [build.verdict("r", index)])
            acknowledge(index)
            if index == COUNT // 2:
                await writer.roll()
        await writer.add_verdict_set(build.verdict_set("second"))
        await writer.commit_verdicts(
            build.verdict("r", stored.plan_index, verdict_set="second") for batch in reader.stored() for stored in batch
        )
        acknowledge(RESCORED)
        await writer.finish()


def check(root: Path, acknowledged: list[int], build: Any) -> None:
    """The invariants, on what a new process finds."""
    reader = Store(root).run("r")
    completed = {index for index, status in reader.completed().items() if status is Status.COMPLETED}
    rollouts = {number for number in acknowledged if number < RESCORED}
    assert rollouts <= completed
    assert len(completed - rollouts) <= 1, "more is durable than can have been on its way"
    for index, record in zip(sorted(completed), reader.records(completed), strict=True):
        expected = build.record("r", index, text=f"answer {index}")
        assert record == expected
        assert len(reader.verdicts(index)) == (2 if RESCORED in acknowledged else len(reader.verdicts(index)))
    stored = [rollout.plan_index for batch in reader.stored() for rollout in batch]
    assert sorted(stored) == sorted(completed)
    assert reader.faults() == []


@pytest.mark.parametrize("power_loss", [False, True], ids=["killed", "power lost"])
def test_dying_at_the_nth_durable_operation(
    tmp_path: Path, build: Any, dying: Callable[[int, bool], Files], power_loss: bool
) -> None:
    template = tmp_path / "template"
    build.run(Store(template), "r", COUNT)
    for number in range(1, 200):
        root = tmp_path / str(number)
        shutil.copytree(template, root)
        store = Store(root, files=dying(number, power_loss))
        status, acknowledged = in_child(lambda acknowledge, store=store: asyncio.run(play(store, build, acknowledge)))  # type: ignore[misc]
        assert status in (0, 77)
        check(root, acknowledged, build)
        if number % 4 == 0 or status == 0:
            asyncio.run(play(Store(root), build, lambda _: None))
            check(root, [*range(COUNT), RESCORED], build)
            with connect(root) as connection:
                assert connection.execute("select count(*) from rollouts").fetchall() == [(COUNT,)]
                assert connection.execute(
                    "select verdict_set, outcome, count(*) from outcomes group by all order by all"
                ).fetchall() == [("first", "scored", COUNT), ("second", "scored", COUNT)]
            assert not list(root.glob("runs/r/**/*.tmp"))
        shutil.rmtree(root)
        if status == 0:
            assert number > 20
            return
    raise AssertionError("the run never came to its end")


@pytest.mark.parametrize("number", range(1, 14))
def test_rs_crash_before_metadata_while_a_run_is_created(
    tmp_path: Path, build: Any, dying: Callable[[int, bool], Files], number: int
) -> None:
    status, _ = in_child(lambda _: build.run(Store(tmp_path, files=dying(number, False)), "r", 2))
    store = Store(tmp_path)
    if status == 77 and not store.runs():
        build.run(store, "r", 2)
    assert [document.run_id for document in store.runs()] == ["r"]
    assert store.run("r").planned() == 2
    assert not list(store.layout.runs.glob(".new-*"))


@pytest.mark.parametrize(("planned", "committed"), [(8, 5), (10, 4)], ids=["rs_durable_before_complete", "rs_sigkill"])
def test_a_killed_run_keeps_what_it_acknowledged(store: Store, build: Any, planned: int, committed: int) -> None:
    """rs-durable-before-complete, rs-sigkill-is-resumable."""
    build.run(store, "r", planned)

    async def part(acknowledge: Callable[[int], None]) -> None:
        async with store.writer("r") as writer:
            for index in range(committed):
                await writer.commit(build.record("r", index))
                acknowledge(index)
            os.kill(os.getpid(), signal.SIGKILL)

    status, acknowledged = in_child(lambda acknowledge: asyncio.run(part(acknowledge)))
    assert (status, acknowledged) == (-signal.SIGKILL, list(range(committed)))
    assert len(store.run("r").completed()) == committed
    pending = store.run("r").pending()
    assert len(pending) == planned - committed

    async def rest() -> None:
        async with store.writer("r") as writer:
            for row in pending:
                await writer.commit(build.record("r", row.plan_index))
            await writer.finish()

    asyncio.run(rest())
    with connect(store.root) as connection:
        counts = connection.execute("select count(*), count(distinct plan_index) from rollouts").fetchall()
    assert counts == [(planned, planned)]


RUNNER = """
import asyncio, importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("building", sys.argv[2])
building = importlib.util.module_from_spec(spec); spec.loader.exec_module(building)
import gymflow.store.writer
from gymflow.store import Store
gymflow.store.writer.ROLL_BYTES = 100_000

async def main():
    store, build = Store(sys.argv[1]), building.Build()
    async with store.writer("r") as writer:
        todo = iter([row.plan_index for row in store.run("r").pending()])
        async def work():
            for index in todo:
                await writer.commit(build.record("r", index, text=f"answer {index}"))
                print(index, flush=True)
        await asyncio.gather(*(work() for _ in range(16)))
        await writer.finish()

asyncio.run(main())
"""


@pytest.mark.slow
def test_twenty_kills_at_any_moment(tmp_path: Path, build: Any) -> None:
    """Twenty real SIGKILLs at any moment; every rollout is acknowledged by exactly one of the processes, or was on its way."""
    count = 20_000
    build.run(Store(tmp_path), "r", count)
    chance = random.Random(0)
    acknowledged: list[int] = []
    helpers = str(Path(__file__).with_name("conftest.py"))
    for kill in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(tmp_path), helpers], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.random() * 0.5)
        process.kill()
        rest = process.stdout.read()
        process.wait()
        done = [int(line) for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]
        assert not set(done) & set(acknowledged), f"done again after kill {kill}"
        acknowledged += done
        completed = Store(tmp_path).run("r").completed()
        assert set(acknowledged) <= set(completed)
        assert len(completed) - len(acknowledged) <= 16 * (kill + 1)
    with connect(tmp_path) as connection:
        assert connection.execute("select count(*) - count(distinct plan_index) from rollouts").fetchall() == [(0,)]
    assert Store(tmp_path).run("r").faults() == []
