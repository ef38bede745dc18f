"""Endpoints that behave as a test tells them to, in the test's own event loop."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from gymflow.contracts.model import ModelSpec

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def chat_answer(text: str = "4", **fields: Any) -> dict[str, Any]:
    """A chat completion with this text."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    answer = {"id": "c1", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    return answer | fields


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    """`await serve(handler)`: the base URL of a server that answers every request with the handler."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler) -> str:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", handler)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            return f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

        yield start


@pytest.fixture
def spec() -> Callable[..., ModelSpec]:
    """A model specification for an endpoint, with defaults that suit tests."""

    def make(base_url: str, **fields: Any) -> ModelSpec:
        return ModelSpec(**({"provider": "openai", "model": "m", "base_url": base_url, "max_retries": 2} | fields))

    return make
