"""Concurrency that costs nothing where nothing waits: a verifier that only computes is scored without a task or a timer."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from functools import partial
from typing import Any, TypeVar

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


async def within(seconds: float | None, coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; TimeoutError where it waits for longer than this. The limit is set when it first waits, since no
    limit could interrupt it before."""
    try:
        awaited = coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await _Begun(coroutine, awaited)


class _Begun(Awaitable[T]):
    """The rest of a coroutine that waits already."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], awaited: Any) -> None:
        self.coroutine = coroutine
        self.awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        awaited = self.awaited
        while True:
            step: Callable[[], Any]
            try:
                sent = yield awaited
            except BaseException as error:
                step = partial(self.coroutine.throw, error)
            else:
                step = partial(self.coroutine.send, sent)
            try:
                awaited = step()
            except StopIteration as done:
                result: T = done.value
                return result
