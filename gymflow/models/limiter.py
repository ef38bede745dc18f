"""How many calls to one model may be in flight: an adaptive bound, shared fairly between rollouts."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from math import inf

DECREASE = 0.7
"""Factor on the limit when the endpoint says that it is overloaded."""


class Limiter:
    """Additive increase, multiplicative decrease (Chiu & Jain 1989) under a fixed maximum; None means no maximum.

    Waiting rollouts take turns, one call each, so that one with many calls does not starve the others. All calls in flight when
    the endpoint first complains count as one complaint.
    """

    def __init__(self, maximum: int | None = None) -> None:
        self.maximum = inf if maximum is None else float(maximum)
        self.limit = self.maximum
        self.in_flight = 0
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self._decreased_at = -inf
        self._closed_until = -inf

    async def acquire(self, owner: Hashable) -> None:
        """Wait for a slot; every return is answered by one `release`."""
        if not self._waiting and self._open():
            self.in_flight += 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """A call was answered: after about `limit` of them the limit is one higher."""
        if self.limit < self.maximum:
            self.limit = min(self.maximum, self.limit + 1 / self.limit)
            self._admit()

    def overloaded(self, started_at: float, retry_after_s: float | None = None) -> None:
        """The endpoint refused a call begun at `started_at` (loop time) for want of capacity; with `retry_after_s` no call
        begins before that time is over."""
        loop = asyncio.get_running_loop()
        if started_at > self._decreased_at:
            self._decreased_at = loop.time()
            self.limit = max(1.0, min(self.limit, float(self.in_flight)) * DECREASE)
        if retry_after_s:
            self._closed_until = max(self._closed_until, loop.time() + retry_after_s)
            loop.call_later(retry_after_s, self._admit)

    def _open(self) -> bool:
        if self.in_flight >= max(1, int(self.limit) if self.limit < inf else self.in_flight + 1):
            return False
        return self._closed_until == -inf or asyncio.get_running_loop().time() >= self._closed_until

    def _admit(self) -> None:
        while self._waiting and self._open():
            owner, queue = self._waiting.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._waiting[owner] = queue
            if not future.done():
                self.in_flight += 1
                future.set_result(None)
