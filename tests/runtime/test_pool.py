"""Slots that chunks share: at most so many at once, what is left of one is for another, and a drain gives up nothing finished."""

import asyncio

import pytest

from gymflow.runtime.pool import Pool


async def test_a_slot_is_free_again_while_a_result_is_stored():
    storing, began = asyncio.Event(), []

    async def play(number: int) -> int:
        began.append(number)
        return number

    async def keep(number: int) -> None:
        await storing.wait()

    async with Pool(1) as pool:
        done = asyncio.create_task(pool.map(play, [0, 1, 2], keep))
        while len(began) < 2:
            await asyncio.sleep(0)
        assert (pool.running, done.done()) == (0, False)
        storing.set()
        await done
    assert began == [0, 1, 2]


async def test_no_more_than_its_size_play_at_once_and_what_waits_to_be_stored_is_bounded():
    playing = storing = most_playing = most_at_all = 0
    gate = asyncio.Event()

    async def play(_: int) -> None:
        nonlocal playing, most_playing, most_at_all
        playing += 1
        most_playing, most_at_all = max(most_playing, playing), max(most_at_all, playing + storing)
        await asyncio.sleep(0.001)
        playing -= 1

    async def keep(_: None) -> None:
        nonlocal storing
        storing += 1
        await gate.wait()
        storing -= 1

    async with Pool(6) as pool:
        done = asyncio.create_task(pool.map(play, range(40), keep))
        await asyncio.sleep(0.2)
        assert storing == 9  # 6 and a third of it, and one
        gate.set()
        await done
    assert most_playing <= 6 and most_at_all <= 9


async def test_an_error_ends_its_batch_and_no_other():
    async def fail(_: int) -> None:
        raise ValueError("told to")

    async def work(number: int) -> None:
        seen.append(number)

    seen: list[int] = []
    async with Pool(2) as pool:
        with pytest.raises(ValueError, match="told to"):
            await pool.map(work, [1], fail)
        seen.clear()
        with pytest.raises(ValueError, match="told to"):
            await pool.map(fail, [1, 2, 3])
        await pool.map(work, [1, 2, 3])
    assert seen == [1, 2, 3]


async def test_a_drain_waits_for_what_is_being_stored_and_starts_nothing():
    stored, began = [], []
    gate = asyncio.Event()

    async def play(number: int) -> int:
        began.append(number)
        return number

    async def keep(number: int) -> None:
        await gate.wait()
        stored.append(number)

    async with Pool(1) as pool:
        done = asyncio.create_task(pool.map(play, list(range(10)), keep))
        while len(began) < 2:
            await asyncio.sleep(0)
        draining = asyncio.create_task(pool.drain(None))
        await asyncio.sleep(0.01)
        assert not draining.done()
        gate.set()
        await asyncio.gather(draining, done)
    assert stored == began and len(began) < 10
