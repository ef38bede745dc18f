"""Steps of the loop.

Inside a flow run a step is a Prefect task, with states, logs and caching; outside of one it is the plain function, so that a
flow runs the same way with and without a server. With `GYMFLOW_INLINE=1` Prefect, whose import takes seconds, is not even
imported: a command that has no server to record on sets it.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import update_wrapper, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from gymflow.errors import RunIncomplete
from gymflow.store.remote import settle
from tasks import secrets as secrets  # so that `${prefect:…}` is known

P = ParamSpec("P")
R = TypeVar("R")

INLINE = os.environ.get("GYMFLOW_INLINE") == "1"


class Step(Generic[P, R]):
    """A coroutine function that is a Prefect task where there is a flow run. Its result is persisted as JSON, and only where
    a cache policy asks for it."""

    def __init__(self, function: Callable[P, Awaitable[R]], task: Any) -> None:
        self._function = function
        self._task = task
        update_wrapper(self, function)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not in_flow_run():
            return await self._function(*args, **kwargs)
        result: R = await self._task(*args, **kwargs)
        return result

    def refreshed(self, refresh: bool) -> "Step[P, R]":
        """This step, executed even if the cache has a result, where `refresh` is true."""
        if self._task is None:
            return self
        return Step(self._function, self._task.with_options(refresh_cache=refresh))


def step(
    *, cache_policy: Callable[[], Any] | None = None, task_run_name: str | None = None
) -> Callable[[Callable[P, Awaitable[R]]], Step[P, R]]:
    """Turn a coroutine function into a step. `cache_policy` makes the policy; without one nothing is cached or persisted."""

    def wrap(function: Callable[P, Awaitable[R]]) -> Step[P, R]:
        if INLINE:
            return Step(function, None)
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        decorate: Any = task(
            task_run_name=task_run_name,
            cache_policy=cache_policy() if cache_policy else NO_CACHE,
            persist_result=cache_policy is not None,
            result_serializer="json",
        )
        return Step(function, decorate(function))

    return wrap


def flow(**options: Any) -> Callable[[Callable[P, Awaitable[R]]], Any]:
    """Turn a coroutine function into a Prefect flow; inline it stays what it is. Results are not persisted: the store is the
    record, and what a flow run wrote is where the store is when it ends, also on a bucket."""

    def wrap(function: Callable[P, Awaitable[R]]) -> Any:
        if INLINE:
            return function
        from prefect import flow as prefect_flow

        @wraps(function)
        async def settled(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                result = await function(*args, **kwargs)
            except Exception:
                with suppress(RunIncomplete):
                    await asyncio.to_thread(settle)
                raise
            await asyncio.to_thread(settle)
            return result

        return prefect_flow(persist_result=False, **options)(settled)

    return wrap


def in_flow_run() -> bool:
    """Whether Prefect is running this code as part of a flow run."""
    if INLINE:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def chunk_keys() -> Any:
    """The cache policy of a chunk: done when its rollout keys were completed under the same reuse scope and protocol."""
    from tasks.caching import ChunkKeys

    return ChunkKeys()
