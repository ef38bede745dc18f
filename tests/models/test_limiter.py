"""The bound on calls in flight: fair between rollouts, adaptive under overload."""

import asyncio

import pytest

from gymflow.models import limiter as limiter_module
from gymflow.models.limiter import Closed, Limiter


async def test_rollouts_take_turns():
    limiter = Limiter(1)
    await limiter.acquire("other")
    order: list[str] = []

    async def call(owner: str) -> None:
        await limiter.acquire(owner)
        order.append(owner)
        limiter.release()

    greedy = [asyncio.create_task(call("greedy")) for _ in range(3)]
    await asyncio.sleep(0)
    modest = asyncio.create_task(call("modest"))
    await asyncio.sleep(0)
    limiter.release()
    await asyncio.gather(*greedy, modest)
    assert order == ["greedy", "modest", "greedy", "greedy"]
    assert limiter.in_flight == 0


async def test_overload_lowers_the_limit_once_per_wave_and_success_raises_it_again():
    limiter = Limiter(100)
    for owner in range(100):
        await limiter.acquire(owner)
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(0.001)
    for _ in range(30):
        limiter.overloaded(began)
    assert limiter.limit == 70
    for _ in range(71):
        limiter.succeeded()
    assert 70.9 < limiter.limit < 71.1
    for _ in range(10_000):
        limiter.succeeded()
    assert limiter.limit == 100


async def test_a_limit_never_falls_below_one():
    limiter = Limiter(2)
    for _ in range(20):
        await asyncio.sleep(0.0005)
        limiter.overloaded(asyncio.get_running_loop().time())
    await asyncio.wait_for(limiter.acquire("a"), 1)


async def test_without_a_maximum_the_limit_is_learnt_from_overload():
    limiter = Limiter()
    for owner in range(50):
        await limiter.acquire(owner)
    limiter.overloaded(asyncio.get_running_loop().time())
    assert limiter.limit == 35


async def test_nothing_begins_before_the_time_that_the_endpoint_asks_for():
    limiter = Limiter(10)
    loop = asyncio.get_running_loop()
    began = loop.time()
    limiter.overloaded(began, retry_after_s=0.05)
    await limiter.acquire("a")
    assert loop.time() - began >= 0.05


async def test_a_waiter_that_is_cancelled_leaves_no_trace():
    limiter = Limiter(1)
    await limiter.acquire("a")
    waiter = asyncio.create_task(limiter.acquire("b"))
    await asyncio.sleep(0)
    waiter.cancel()
    granted = asyncio.create_task(limiter.acquire("c"))
    await asyncio.sleep(0)
    limiter.release()
    granted.cancel()
    await asyncio.gather(waiter, granted, return_exceptions=True)
    assert limiter.in_flight == 0
    await asyncio.wait_for(limiter.acquire("d"), 1)


async def test_ten_thousand_waiters_keep_the_calls_in_flight_at_the_limit():
    limiter, most = Limiter(64), 0

    async def call(owner: int) -> None:
        nonlocal most
        await limiter.acquire(owner)
        most = max(most, limiter.in_flight)
        await asyncio.sleep(0)
        limiter.release()

    await asyncio.gather(*(call(owner) for owner in range(10_000)))
    assert (most, limiter.in_flight) == (64, 0)


async def test_a_long_pause_is_cut_short_and_those_who_cannot_wait_for_it_are_told_at_once(monkeypatch):
    monkeypatch.setattr(limiter_module, "CLOSED_AT_MOST_S", 1.0)
    limiter = Limiter(1)
    loop = asyncio.get_running_loop()
    await limiter.acquire("busy")
    hasty = asyncio.create_task(limiter.acquire("hasty", 0.1))
    patient = asyncio.create_task(limiter.acquire("patient", 5))
    await asyncio.sleep(0.12)
    assert not hasty.done(), "a queue is no pause"
    began = loop.time()
    limiter.overloaded(began, 86400, "come back tomorrow")
    limiter.release()
    with pytest.raises(Closed):
        await hasty
    with pytest.raises(Closed):
        await limiter.acquire("late", 0.1)
    assert loop.time() - began < 0.8
    assert limiter.reason == "come back tomorrow" and 0 < limiter.pause_s <= 1.001
    waited = await patient
    assert 0.75 < waited <= loop.time() - began < 5
    assert limiter.pause_s == 0
    assert limiter.in_flight == 1


async def test_pauses_add_up_until_a_call_has_no_time_left(monkeypatch):
    monkeypatch.setattr(limiter_module, "CLOSED_AT_MOST_S", 0.1)
    limiter = Limiter(1)
    await limiter.acquire("busy")
    waiting = asyncio.create_task(limiter.acquire("a", 0.25))
    for _ in range(3):
        await asyncio.sleep(0)
        limiter.overloaded(asyncio.get_running_loop().time(), 1)
        await asyncio.sleep(0.11)
    with pytest.raises(Closed):
        await waiting


async def test_an_endpoint_that_asks_for_a_long_pause_twice_is_believed(monkeypatch):
    monkeypatch.setattr(limiter_module, "CLOSED_AT_MOST_S", 0.1)
    limiter = Limiter(4)
    loop = asyncio.get_running_loop()
    limiter.overloaded(loop.time(), 86400)
    waiting = [asyncio.create_task(limiter.acquire(owner, 600)) for owner in range(20)]
    await asyncio.sleep(0.05)
    assert not any(one.done() for one in waiting), "it is asked again before anybody gives up"
    await asyncio.sleep(0.1)
    begun = [one for one in waiting if one.done()]
    assert 1 <= len(begun) <= 4
    limiter.overloaded(loop.time(), 86400)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(one, Closed) for one in outcomes) == 20 - len(begun)
    for _ in begun:
        limiter.release()
    with pytest.raises(Closed):
        await limiter.acquire("late", 600)
    await asyncio.sleep(0.11)
    await limiter.acquire("later", 600)
    limiter.succeeded()
    limiter.overloaded(loop.time(), 86400)
    again = asyncio.create_task(limiter.acquire("patient", 600))
    await asyncio.sleep(0.02)
    assert not again.done(), "one that has answered since is asked again"
    limiter.release()
    await again
