"""The slots that all chunks of a run share, so that none idles while another chunk has work."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class _Batch:
    function: Callable[[Any], Awaitable[Any]]
    then: Callable[[Any], Awaitable[None]] | None
    left: int
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error
        self.finished.set()

    def done(self, count: int = 1) -> None:
        self.left -= count
        if self.left <= 0:
            self.finished.set()


class Pool:
    """`size` slots fed from one queue; `running` of them are taken. An error of one item ends its batch, and only that one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.running = 0
        self._slots = asyncio.Semaphore(size)
        self._busy = 0
        self._queue: asyncio.Queue[tuple[_Batch, Any]] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._draining = False
        self._idle = asyncio.Event()

    async def __aenter__(self) -> "Pool":
        self._workers = [asyncio.create_task(self._work()) for _ in range(self.size + self.size // 3 + 1)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def map(
        self,
        function: Callable[[T], Awaitable[R]],
        items: Sequence[T],
        then: Callable[[R], Awaitable[None]] | None = None,
    ) -> None:
        """Run the function on every item, and `then` on its result when the slot is free for another; returns when all are done,
        or raises the first error. Items in either part are a third more than `size` at most."""
        if not items:
            return
        batch = _Batch(function, then, len(items))
        for item in items:
            self._queue.put_nowait((batch, item))
        try:
            await batch.finished.wait()
        except asyncio.CancelledError:
            batch.error = batch.error or asyncio.CancelledError()
            raise
        if batch.error is not None:
            raise batch.error

    async def drain(self, grace_s: float | None) -> None:
        """Start nothing more; what is running has `grace_s` seconds (None: all the time) to finish and is then cancelled. Batches
        then count as done."""
        self._draining = True
        if self._busy:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._idle.wait()
        for worker in self._workers:
            worker.cancel()
        while not self._queue.empty():
            batch, _ = self._queue.get_nowait()
            batch.done()

    async def _work(self) -> None:
        while True:
            batch, item = await self._queue.get()
            self._busy += 1
            try:
                async with self._slots:
                    if self._draining or batch.error is not None:
                        continue
                    self.running += 1
                    try:
                        result = await batch.function(item)
                    finally:
                        self.running -= 1
                if batch.then is not None:
                    await batch.then(result)
            except asyncio.CancelledError as error:
                if not self._draining:  # what a drain gives up is left undone, which is no error
                    batch.fail(error)
                raise
            except BaseException as error:
                batch.fail(error)
            finally:
                self._busy -= 1
                if self._busy == 0:
                    self._idle.set()
                batch.done()
