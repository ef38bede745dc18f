"""Work that never waits costs no task, and what waits is bounded as usual."""

import asyncio

import pytest

from gymflow.runtime.concurrency import spread, within


async def test_results_come_in_the_order_of_the_items_and_no_more_than_the_limit_run_at_once():
    running = most = 0

    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (5 - number % 5))
        running -= 1
        return number * number

    assert await spread(work, range(50), 7) == [number * number for number in range(50)]
    assert most == 7
    assert await spread(work, [], 7) == []


async def test_work_that_never_waits_is_done_by_one_worker():
    tasks = set()

    async def work(number: int) -> int:
        tasks.add(asyncio.current_task())
        return number

    assert await spread(work, range(100), 64) == list(range(100))
    assert len(tasks) == 1


async def test_the_first_error_is_raised_itself_and_ends_the_rest():
    ended = []

    async def work(number: int) -> None:
        if number == 3:
            raise LookupError("three")
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(number)

    with pytest.raises(LookupError, match="three"):
        await spread(work, range(8), 4)
    assert sorted(ended) == [0, 1, 2]


async def test_a_limit_ends_what_waits_too_long_and_lets_it_clean_up():
    cleaned = []

    async def slow() -> None:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(10)
        finally:
            cleaned.append(True)

    with pytest.raises(TimeoutError):
        await within(0.02, slow())
    assert cleaned == [True]


async def test_what_ends_in_time_gives_its_result_or_its_error():
    async def at_once() -> str:
        return "at once"

    async def later() -> str:
        for _ in range(3):
            await asyncio.sleep(0.001)
        return "later"

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("told to")

    assert [await within(5, at_once()), await within(5, later()), await within(None, later())] == [
        "at once",
        "later",
        "later",
    ]
    with pytest.raises(ValueError, match="told to"):
        await within(5, fails())


async def test_a_cancelled_caller_cancels_what_it_waits_for():
    seen = []

    async def slow() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.create_task(within(5, slow()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
