"""Whether an endpoint is alive. A dead one pauses every call to it, and in the end the run, instead of failing rollouts."""

import asyncio
from collections.abc import Awaitable, Callable

from gymflow.contracts.outcome import FailureKind
from gymflow.errors import RunIncomplete
from gymflow.models.base import ContextOverflow, ModelError

PROBE_TIMEOUT_S = 5.0
_DOUBTFUL_STATUS = frozenset({401, 502, 503, 504})
_DOUBTFUL_IN_A_ROW = 3
_REFUSAL_STATUS = frozenset({401, 402, 403, 404})
_REFUSED_IN_A_ROW = 3
_REFUSED_IN_A_ROW_LATER = 10
"""Once an endpoint has answered: a few refusals may be of single requests, as of a content policy."""


class EndpointDown(RunIncomplete):
    """An endpoint stayed dead for longer than the run waits. Rollouts in flight are missing, neither failed nor scored."""


class Health:
    """Watches the outcome of every call to one endpoint.

    A call that does not reach it, or three in a row that time out or that a proxy answers for it, pause it: calls wait while one
    prober asks whether it is back. After `unreachable_s` everyone who waits gets `EndpointDown`; at once where the endpoint refuses
    the key or the model in call after call, which no waiting mends. What it refuses may be what was asked, by one caller again and
    again: so it counts as refusing all only when it refuses the smallest call, too.
    """

    def __init__(
        self,
        name: str,
        probe: Callable[[], Awaitable[None]],
        smallest_call: Callable[[], Awaitable[object]],
        unreachable_s: float,
    ) -> None:
        self._name = name
        self._probe = probe
        self._smallest_call = smallest_call
        self._unreachable_s = unreachable_s
        self._doubts = 0
        self._refusals = 0
        self._answered = False
        self._prober: asyncio.Task[None] | None = None
        self._down: EndpointDown | None = None
        self.reason: str | None = None
        """Why calls wait now, in the endpoint's own words where it has any."""

    @property
    def paused(self) -> bool:
        """Whether a call has to wait in `ready`."""
        return self._prober is not None or self._down is not None

    async def ready(self) -> None:
        """Return once calls may go out. Raises EndpointDown when waiting has been given up."""
        while self._prober is not None:
            await asyncio.wait([self._prober])
        if self._down is not None:
            raise EndpointDown(str(self._down)) from self._down.__cause__

    def succeeded(self) -> None:
        """A call was answered."""
        self._doubts = self._refusals = 0
        self._answered = True

    def failed(self, error: ModelError) -> None:
        """A call failed. Errors that the endpoint itself answered with say that it is alive."""
        if error.status in _REFUSAL_STATUS and not self.paused and self._refused(error):
            return
        unreachable = error.kind is FailureKind.MODEL_UNREACHABLE
        if not (unreachable or error.kind is FailureKind.MODEL_TIMEOUT or error.status in _DOUBTFUL_STATUS):
            self._doubts = 0
            return
        self._doubts += 1
        if (unreachable or self._doubts >= _DOUBTFUL_IN_A_ROW) and not self.paused:
            self.reason = error.message
            self._prober = asyncio.create_task(self._watch(error))

    def _refused(self, error: ModelError) -> bool:
        self._refusals += 1
        if self._refusals < (_REFUSED_IN_A_ROW_LATER if self._answered else _REFUSED_IN_A_ROW):
            return False
        self._prober = asyncio.create_task(self._try())
        return True

    async def _try(self) -> None:
        """Find out whether it refuses every call, or only those that were made."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                await self._smallest_call()
            self.succeeded()
        except ModelError as error:
            if error.status in _REFUSAL_STATUS:
                self._down = EndpointDown(f"model {self._name!r} refuses every call: {error.message}")
                self._down.__cause__ = error
        except (ContextOverflow, TimeoutError):
            pass  # which is no refusal
        finally:
            self._refusals = 0
            self._prober = None

    async def close(self) -> None:
        """End the prober."""
        if self._prober is not None:
            self._prober.cancel()
            await asyncio.wait([self._prober])

    async def _watch(self, error: ModelError) -> None:
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), 0.1
        try:
            while True:
                try:
                    async with asyncio.timeout(PROBE_TIMEOUT_S):
                        await self._probe()
                except (ModelError, TimeoutError) as failure:
                    error = failure if isinstance(failure, ModelError) else error
                    self.reason = error.message
                else:
                    self._doubts = 0
                    self.reason = None
                    return
                left = began + self._unreachable_s - loop.time()
                if left <= 0:
                    self._down = EndpointDown(
                        f"model {self._name!r} has been out of reach for {self._unreachable_s:g} s: {error.message}"
                    )
                    self._down.__cause__ = error
                    return
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, 5.0)
        finally:
            self._prober = None
