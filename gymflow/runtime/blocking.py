"""A limit on code that never gives the event loop back, which no asyncio timeout can interrupt.

A session that calls `time.sleep`, a verifier whose pattern backtracks for hours: while one of them computes, every other rollout
of the run stands still. A timer's signal interrupts both, system calls and computation alike.
"""

import signal
import threading
import time
from types import FrameType, TracebackType

AGAIN_S = 1.0
"""The signal comes again after this, for code that catches every exception and goes on."""

_MAIN = threading.main_thread().ident


class Blocked(TimeoutError):
    """Raised in code that held up the event loop for longer than it may."""


class blocking_limit:
    """Raises Blocked inside the block once it has run for `seconds` without a pause. In a block within a block the outer limit
    holds. Signals reach the main thread alone: in an event loop of another thread nothing is limited, nor where the process has a
    use of its own for SIGALRM."""

    _deadline: float | None = None
    _fires_at: float | None = None
    """When the timer is set for: it outlives the block, since setting it anew for each would cost more than most verdicts."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._mine = False

    def __enter__(self) -> None:
        if blocking_limit._deadline is None and threading.get_ident() == _MAIN:
            self._mine = True
            blocking_limit._deadline = deadline = time.monotonic() + self._seconds
            if blocking_limit._fires_at is None or deadline < blocking_limit._fires_at:
                if signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:
                    signal.signal(signal.SIGALRM, _fired)
                if signal.getsignal(signal.SIGALRM) is _fired:
                    _set_timer(self._seconds)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._mine:
            self._mine = False
            blocking_limit._deadline = None


def _set_timer(seconds: float) -> None:
    blocking_limit._fires_at = time.monotonic() + seconds
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _fired(number: int, frame: FrameType | None) -> None:
    blocking_limit._fires_at = None
    if blocking_limit._deadline is None:
        return
    left = blocking_limit._deadline - time.monotonic()
    _set_timer(left if left > 0 else AGAIN_S)
    if left <= 0:
        raise Blocked("it held up the event loop")
