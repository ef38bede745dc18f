"""How many calls to one model may be in flight: an adaptive bound, shared fairly between rollouts."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

DECREASE = 0.7
"""Factor on the limit when the endpoint says that it is overloaded."""
CLOSED_AT_MOST_S = 60.0
"""An endpoint that asks for a longer pause is asked again after this one: what held for one call need not hold for the next. When
it then asks for a longer one again, it is believed: calls that cannot wait for so long give up, and do not wait in vain."""


class Closed(Exception):
    """The endpoint has asked for a longer pause than the call can wait."""


class Limiter:
    """Additive increase, multiplicative decrease (Chiu & Jain 1989) under a fixed maximum; None means no maximum.

    Waiting rollouts take turns, one call each, so that one with many calls does not starve the others. All calls in flight when
    the endpoint first complains count as one complaint.
    """

    def __init__(self, maximum: int | None = None) -> None:
        self.maximum = inf if maximum is None else float(maximum)
        self.limit = self.maximum
        self.in_flight = 0
        self._waiting: OrderedDict[Hashable, deque[_Waiter]] = OrderedDict()
        self._decreased_at = -inf
        self._closed_at = self._closed_until = 0.0
        self._closed_s = 0.0
        self._believed_until = 0.0
        self._long_pauses = 0
        self.reason = ""
        """Why the endpoint was closed last, in its own words."""

    async def acquire(self, owner: Hashable, patience_s: float = inf) -> float:
        """Wait for a slot, which is to be given back by `release`; seconds of the wait during which the endpoint was closed.

        Raises Closed as soon as those are known to come to `patience_s`; time in the queue alone is never too long.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting and self._open():
            self.in_flight += 1
            return 0.0
        before = self._closed_by(loop.time())
        if self._opening() - before >= patience_s:
            raise Closed
        waiter = _Waiter(loop.create_future(), before + patience_s)
        self._waiting.setdefault(owner, deque()).append(waiter)
        try:
            await waiter.slot
        except asyncio.CancelledError:
            if not waiter.slot.cancelled() and waiter.slot.exception() is None:
                self.release()
            raise
        return self._closed_by(loop.time()) - before

    @property
    def closed(self) -> bool:
        """Whether no call may begin now, because the endpoint asked for a pause."""
        return self._closed_until > 0.0 and asyncio.get_running_loop().time() < self._closed_until

    @property
    def pause_s(self) -> float:
        """How long that pause is, from its begin to its end; 0 where there is none."""
        return self._closed_until - self._closed_at if self.closed else 0.0

    def release(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """A call was answered: after about `limit` of them the limit is one higher."""
        self._long_pauses = 0
        if self.limit < self.maximum:
            self.limit = min(self.maximum, self.limit + 1 / self.limit)
            self._admit()

    def overloaded(self, started_at: float, retry_after_s: float | None = None, reason: str = "") -> None:
        """The endpoint refused a call begun at `started_at` (loop time) for want of capacity; with `retry_after_s` no call
        begins before that time is over, or `CLOSED_AT_MOST_S`."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if started_at > self._decreased_at:
            self._decreased_at = now
            self.limit = max(1.0, min(self.limit, float(self.in_flight)) * DECREASE)
            self._long_pauses = self._long_pauses + 1 if (retry_after_s or 0.0) > CLOSED_AT_MOST_S else 0
        pause = min(retry_after_s or 0.0, CLOSED_AT_MOST_S)
        if now + pause > max(now, self._closed_until):
            self._closed_s = self._closed_by(now)
            self._closed_at, self._closed_until, self.reason = now, now + pause, reason
            self._believed_until = now + (retry_after_s or 0.0) if self._long_pauses > 1 else self._closed_until
            self._give_up()
            loop.call_later(pause, self._admit)

    def _closed_by(self, time: float) -> float:
        """Seconds for which the endpoint will have been closed at a time, in all."""
        return self._closed_s + max(0.0, min(time, self._closed_until) - self._closed_at)

    def _opening(self) -> float:
        """Seconds for which the endpoint will have been closed, in all, when it opens again."""
        end = self._believed_until if self.closed else self._closed_until
        return self._closed_s + end - self._closed_at

    def _give_up(self) -> None:
        """Tell those who cannot wait until it opens."""
        opening = self._opening()
        for owner, queue in list(self._waiting.items()):
            for waiter in [one for one in queue if one.gives_up_at <= opening]:
                queue.remove(waiter)
                if not waiter.slot.done():
                    waiter.slot.set_exception(Closed())
            if not queue:
                del self._waiting[owner]

    def _open(self) -> bool:
        if self.in_flight >= max(1, int(self.limit) if self.limit < inf else self.in_flight + 1):
            return False
        return not self.closed

    def _admit(self) -> None:
        while self._waiting and self._open():
            owner, queue = self._waiting.popitem(last=False)
            waiter = queue.popleft()
            if queue:
                self._waiting[owner] = queue
            if not waiter.slot.done():
                self.in_flight += 1
                waiter.slot.set_result(None)


@dataclass(slots=True)
class _Waiter:
    """A call in the queue. `gives_up_at`: the seconds of closure, of all since the start, at which it has none left to wait."""

    slot: asyncio.Future[None]
    gives_up_at: float
