"""Work that does not end, or takes its process down, is an undecided verdict, and the next job finds a fresh process."""

import asyncio
import os
import subprocess
import sys
import time

import pytest
from gymflow.verifiers._workers import WorkerPool

from gymflow.verifiers import VerifierError, VerifierTimeout

SEARCH = "gymflow.verifiers._patterns:last_match"
CATASTROPHE = {"pattern": r"(a+)+$", "text": "a" * 60 + "b"}
ORDINARY = {"pattern": r"(\d+)", "text": "7 and 8"}


async def test_a_missed_deadline_kills_the_process_and_the_next_job_is_served() -> None:
    pool = WorkerPool(SEARCH, deadline_s=0.5, size=1)
    assert await pool.call(ORDINARY) == "8"
    begun = time.monotonic()
    with pytest.raises(VerifierTimeout):
        await pool.call(CATASTROPHE)
    assert time.monotonic() - begun < 1.5
    assert await pool.call(ORDINARY) == "8"
    await pool.close()


async def test_an_exception_in_the_process_is_named() -> None:
    pool = WorkerPool(SEARCH, deadline_s=5, size=1)
    with pytest.raises(VerifierError, match=r"KeyError|pattern"):
        await pool.call({"text": "x"})
    await pool.close()


async def test_a_process_that_dies_is_an_error_and_is_replaced() -> None:
    pool = WorkerPool("os:_exit", deadline_s=5, size=1)
    with pytest.raises(VerifierError):
        await pool.call(3)
    with pytest.raises(VerifierError):
        await pool.call(3)
    await pool.close()


async def test_memory_is_bounded() -> None:
    pool = WorkerPool("builtins:bytearray", deadline_s=20, size=1)
    with pytest.raises(VerifierError, match="memory"):
        await pool.call(8 * 1024**3)
    await pool.close()


async def test_an_unknown_function_is_an_error_not_a_hang() -> None:
    pool = WorkerPool("gymflow.no_such_module:f", deadline_s=5, size=1)
    with pytest.raises(VerifierError, match="did not start"):
        await pool.call(1)


async def test_a_cancelled_job_leaves_no_process_busy() -> None:
    pool = WorkerPool(SEARCH, deadline_s=30, size=1)
    await pool.call(ORDINARY)
    job = asyncio.create_task(pool.call(CATASTROPHE))
    await asyncio.sleep(0.2)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert await asyncio.wait_for(pool.call(ORDINARY), 10) == "8"
    await pool.close()


async def test_lone_surrogates_pass_both_ways() -> None:
    pool = WorkerPool(SEARCH, deadline_s=5, size=1)
    assert await pool.call({"pattern": "x(.)", "text": "x\ud800"}) == "\ud800"
    await pool.close()


async def test_the_environment_of_a_worker_holds_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    pool = WorkerPool("os:getenv", deadline_s=5, size=1)
    assert await pool.call("OPENAI_API_KEY") is None
    await pool.close()


@pytest.mark.slow
def test_a_worker_ends_itself_when_nobody_is_left_to_kill_it() -> None:
    code = f"""
import asyncio
from gymflow.verifiers._workers import WorkerPool
async def main():
    pool = WorkerPool({SEARCH!r}, deadline_s=1.0, size=1)
    await pool.call({ORDINARY!r})
    print(pool._idle[0].pid, flush=True)
    await pool.call({CATASTROPHE!r})
asyncio.run(main())
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 15
    while _alive(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _alive(worker)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
