"""Concurrency that costs nothing where nothing waits: a verifier that only computes is scored without a task or a timer."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from gymflow.runtime.blocking import blocking_limit

T = TypeVar("T")
R = TypeVar("R")


async def spread(work: Callable[[T], Awaitable[R]], items: Iterable[T], limit: int) -> list[R]:
    """The work's result for every item, in their order, at most `limit` at a time; raises the first error. A further worker
    starts only when those before it wait for something."""
    left = iter(enumerate(items))
    results: dict[int, R] = {}

    async def worker(more: int) -> None:
        for position, item in left:
            if more:
                group.create_task(worker(more - 1))
                more = 0
            results[position] = await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            await worker(limit - 1)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [results[position] for position in range(len(results))]


async def within(seconds: float | None, answer: Awaitable[T]) -> T:
    """The result of what is awaited; TimeoutError where it takes longer than this, waiting or computing. The timer of the event
    loop is set when it first waits, so that what only computes costs none."""
    steps = _Steps(answer, seconds)
    try:
        steps.begin()
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await steps


class _Steps(Awaitable[T]):
    """What is awaited, step by step, none of which may hold up the event loop for longer than `seconds`."""

    def __init__(self, answer: Awaitable[T], seconds: float | None) -> None:
        self._iterator = answer.__await__()
        self._limit = nullcontext() if seconds is None else blocking_limit(seconds)
        self._awaited: Any = None

    def begin(self) -> None:
        """The first step; StopIteration with the result where there is no other."""
        with self._limit:
            self._awaited = next(self._iterator)

    def __await__(self) -> Generator[Any, Any, T]:
        awaited = self._awaited
        while True:
            step: Callable[[], Any]
            try:
                sent = yield awaited
            except BaseException as error:
                step = partial(self._iterator.throw, error)
            else:
                step = partial(self._iterator.send, sent)
            try:
                with self._limit:
                    awaited = step()
            except StopIteration as done:
                result: T = done.value
                return result
