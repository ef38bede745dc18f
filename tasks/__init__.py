"""Steps of the loop.

Inside a flow run a step is a Prefect task, with states, logs and caching; outside of one it is the plain function, so that a
flow runs the same way with and without a server.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE, CachePolicy
from prefect.context import FlowRunContext, TaskRunContext

P = ParamSpec("P")
R = TypeVar("R")


class Step(Generic[P, R]):
    """A coroutine function that is a Prefect task where there is a flow run. Its result is persisted as JSON, and only where
    a cache policy asks for it."""

    def __init__(self, function: Callable[P, Awaitable[R]], cache_policy: CachePolicy, options: dict[str, Any]) -> None:
        cached = cache_policy is not NO_CACHE
        self._function = function
        self._task: Any = task(
            function, cache_policy=cache_policy, persist_result=cached, result_serializer="json", **options
        )
        update_wrapper(self, function)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if FlowRunContext.get() is None:
            return await self._function(*args, **kwargs)
        result: R = await self._task(*args, **kwargs)
        return result

    def refreshed(self, refresh: bool) -> "Step[P, R]":
        """This step, executed even if the cache has a result, where `refresh` is true."""
        changed: Step[P, R] = object.__new__(Step)
        changed._function = self._function
        changed._task = self._task.with_options(refresh_cache=refresh)
        return changed


def step(*, cache_policy: CachePolicy = NO_CACHE, **options: Any) -> Callable[[Callable[P, Awaitable[R]]], Step[P, R]]:
    """Turn a coroutine function into a step."""
    return lambda function: Step(function, cache_policy, options)


@dataclass
class ChunkKeys(CachePolicy):
    """A chunk is done when its rollout keys were completed under the same reuse scope and sampling protocol."""

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **_: Any
    ) -> str:
        return str(inputs["chunk"].digest)
