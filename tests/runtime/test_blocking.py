"""Code that never gives the event loop back is interrupted, and only that."""

import asyncio
import re
import signal
import time

import pytest

from gymflow.errors import RolloutFailure
from gymflow.runtime.blocking import Blocked, blocking_limit
from gymflow.runtime.concurrency import within
from gymflow.runtime.episode import asked


async def sleeping() -> None:
    time.sleep(60)


async def computing() -> None:
    while True:
        pass


async def backtracking() -> None:
    re.fullmatch(r"(a|aa)+b", "a" * 60)


async def stubborn() -> str:
    for _ in range(2):
        try:
            time.sleep(60)
        except TimeoutError:
            pass
    return "let go at last"


async def later() -> None:
    await asyncio.sleep(0)
    time.sleep(60)


@pytest.mark.parametrize("hanging", [sleeping, computing, backtracking, later])
async def test_what_holds_up_the_event_loop_is_interrupted(hanging):
    with pytest.raises(Blocked):
        await within(0.2, hanging())
    await asyncio.sleep(0)


async def test_code_that_catches_everything_is_interrupted_again():
    assert await within(0.1, stubborn()) == "let go at last"


async def test_the_limit_ends_with_the_block_and_the_outer_one_holds():
    with blocking_limit(0.1), blocking_limit(60), pytest.raises(Blocked):
        time.sleep(60)
    time.sleep(0.2)
    assert await within(0.1, asyncio.sleep(0, "in time")) == "in time"
    time.sleep(0.2)


async def test_a_thread_of_its_own_is_not_limited():
    assert await asyncio.to_thread(lambda: asyncio.run(within(0.05, _briefly_blocking()))) == "done"


async def _briefly_blocking() -> str:
    time.sleep(0.2)
    return "done"


async def test_a_session_that_blocks_is_named_with_what_to_do():
    with pytest.raises(RolloutFailure, match=r"held up every rollout in tool search for 0.1 s.*asyncio.to_thread"):
        await asked(sleeping(), "tool search", 0.1)


async def test_a_session_whose_method_is_no_coroutine_is_told_so():
    with pytest.raises(RolloutFailure, match=r"the session's respond has to be `async def`: it returned str"):
        await asked("at once", "respond", 0.1)


async def test_a_process_that_has_its_own_use_for_the_signal_keeps_it():
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(True))
    try:
        with blocking_limit(0.05):
            time.sleep(0.1)
        assert not heard
    finally:
        signal.signal(signal.SIGALRM, before)
