"""One model of a run as every rollout shares it: its provider, its bounds, and the retries of a call."""

import asyncio
import random
import time
from collections.abc import Hashable

from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.trajectory import ModelCall
from gymflow.models.base import EventSink, ModelError, ModelRequest, ModelResponse, Provider, RemoteSink, Sink
from gymflow.models.health import Health
from gymflow.models.limiter import Closed, Limiter
from gymflow.models.prices import Price, price_of

BACKOFF_BASE_S = 0.5
BACKOFF_CAP_S = 30.0
TOLD_FROM_S = 3.0
"""A pause that an endpoint asks for is worth telling from this length on."""
OVERLOADED_STATUS = frozenset({429, 503, 529})


class Upstream:
    """Calls a provider within the model's bounds. A call holds a slot only while an attempt is under way."""

    def __init__(self, name: str, provider: Provider, *, concurrency: int | None, unreachable_s: float) -> None:
        self.name = name
        self.provider = provider
        self.spec: ModelSpec = provider.spec
        self.limiter = Limiter(self.spec.concurrency or concurrency)
        self.health = Health(name, provider.probe, self._smallest_call, unreachable_s)
        self.price: Price | None = price_of(self.spec)

    @property
    def waits_for(self) -> str | None:
        """Why calls wait now, in the endpoint's own words where it has any."""
        return self.limiter.reason if self.limiter.pause_s >= TOLD_FROM_S else self.health.reason

    async def call(
        self, request: ModelRequest, record: ModelCall, owner: Hashable, sink: Sink | None = None
    ) -> ModelResponse:
        """The answer to a request, with attempts, times and errors noted in `record`.

        The attempts, the pauses between them and those that the endpoint asks for share `timeout_s`; waiting for a slot or for an
        endpoint that is out of reach does not count.
        With a `sink` the answer is streamed, and not asked for again once a part of it has been handed on.
        Raises the last attempt's ModelError, ContextOverflow, or EndpointDown.
        """
        entered = time.monotonic()
        left = self.spec.timeout_s
        attempt = 0
        handed_on = sink if sink is None or isinstance(sink, RemoteSink) else _HandedOn(sink)
        while True:
            if self.health.paused:
                await self.health.ready()
            try:
                left -= await self.limiter.acquire(owner, left)
            except Closed:
                record.queue_s = time.monotonic() - entered - record.duration_s
                closed = self._closed()
                record.error_kind, record.error_message = closed.kind, closed.message
                raise closed from None
            attempt += 1
            began = time.monotonic()
            try:
                response = await self._attempt(request, left, handed_on)
            except ModelError as error:
                failure = error
            else:
                self.limiter.succeeded()
                self.health.succeeded()
                record.status, record.error_kind, record.error_message = "ok", None, None
                return response
            finally:
                ended = time.monotonic()
                self.limiter.release()
                record.attempts = attempt
                record.duration_s += ended - began
                record.queue_s = ended - entered - record.duration_s
            record.error_kind, record.error_message, record.http_status = failure.kind, failure.message, failure.status
            self._note(failure, began)
            if self.health.paused:
                await self.health.ready()
            pause = backoff_s(attempt, failure.retry_after_s)
            left -= ended - began + pause
            if handed_on is not None and handed_on.begun:
                raise failure
            if not failure.retryable or attempt > self.spec.max_retries or left <= 0:
                raise failure
            await asyncio.sleep(pause)

    async def _attempt(
        self, request: ModelRequest, left: float, sink: "_HandedOn | RemoteSink | None"
    ) -> ModelResponse:
        try:
            async with asyncio.timeout(left):
                if isinstance(sink, RemoteSink):
                    return await sink.stream(self.provider, request)
                if sink is not None:
                    return await self.provider.stream(request, sink)
                return await self.provider.complete(request)
        except TimeoutError as error:
            raise ModelError(
                FailureKind.MODEL_TIMEOUT, f"model {self.name!r} did not answer within {self.spec.timeout_s:g} s"
            ) from error

    def _note(self, failure: ModelError, began: float) -> None:
        if failure.status in OVERLOADED_STATUS:
            self.limiter.overloaded(began, failure.retry_after_s, failure.message)
        self.health.failed(failure)

    def _closed(self) -> ModelError:
        """What a call comes to that cannot wait for as long as the endpoint asks."""
        words = f"model {self.name!r} asks for a longer pause than a call may take ({self.spec.timeout_s:g} s)"
        return ModelError(FailureKind.MODEL_RATE_LIMITED, f"{words}: {self.limiter.reason}")

    async def _smallest_call(self) -> None:
        """Raises ModelError when not even that is answered."""
        smallest = Sampling(max_output_tokens=16)
        await self.provider.complete(ModelRequest([{"role": "user", "content": "Say ok."}], sampling=smallest))


class _HandedOn:
    """A sink that remembers whether anything went through it."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self.begun = False

    async def __call__(self, event: bytes) -> None:
        self.begun = True
        await self._sink(event)


def backoff_s(attempt: int, retry_after_s: float | None) -> float:
    """Pause after the n-th failed attempt: full jitter over an exponentially growing range, on top of what the endpoint asks
    for (https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter)."""
    jitter = random.uniform(0, min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** (attempt - 1)))
    return jitter if retry_after_s is None else retry_after_s + min(jitter, 1.0)
