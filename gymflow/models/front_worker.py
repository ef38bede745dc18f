"""The process in front of a gateway under many streams: `python -m gymflow.models.front_worker BACKEND FD…`.

It accepts the callers' connections and passes every request on to the gateway. Where that is about to stream an endpoint's answer,
it has this process make the attempt, so that no event goes through the gateway's own loop. It ends with its parent.
"""

import asyncio
import itertools
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.outcome import FailureKind
from gymflow.errors import InputError
from gymflow.models.base import ContextOverflow, ModelError, Provider
from gymflow.models.front_wire import error_json, receive, request_of, response_json, send
from gymflow.models.providers import make_provider
from gymflow.secrets import RESOLVERS

STREAM_HEADER = "x-gymflow-stream"
MAX_BODY = 256 * 1024 * 1024
_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length"}
)


class Passing:
    """One caller's answer, written by the gateway and, for streams, by this process: whole events, one at a time."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self._writing = asyncio.Lock()
        self._rest = b""

    async def begin(self, status: int, headers: Mapping[str, str], length: str | None = None) -> None:
        """Send the head, unless one was sent."""
        async with self._writing:
            if self._response is None:
                response = web.StreamResponse(status=status)
                for name, value in headers.items():
                    if name.lower() not in _HOP:
                        response.headers.add(name, value)
                if length is not None:
                    response.content_length = int(length)
                await response.prepare(self._request)
                self._response = response

    async def event(self, event: bytes) -> None:
        """Write an event of the endpoint's."""
        await self.begin(200, {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"})
        await self._write(event)

    async def relay(self, chunk: bytes) -> None:
        """Write what the gateway says; within a stream only up to the end of an event."""
        assert self._response is not None
        if self._response.content_type == "text/event-stream":
            whole, end, self._rest = (self._rest + chunk).rpartition(b"\n\n")
            chunk = whole + end
        if chunk:
            await self._write(chunk)

    async def finish(self) -> web.StreamResponse:
        """End the answer."""
        assert self._response is not None
        if self._rest:
            await self._write(self._rest)
        await self._response.write_eof()
        return self._response

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            assert self._response is not None
            await self._response.write(data)


class Front:
    """Passes requests on, and makes attempts when it is told to."""

    def __init__(self, backend: str, secret: str, control: asyncio.StreamWriter) -> None:
        self._secret, self._control = secret, control
        self._backend = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(path=backend, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._streams: dict[int, Passing] = {}
        self._numbers = itertools.count()
        self._attempts: dict[int, asyncio.Task[None]] = {}
        self._providers: dict[str, asyncio.Task[Provider]] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request of a caller's."""
        number, passing = next(self._numbers), Passing(request)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        headers[STREAM_HEADER] = f"{self._secret}.{number}"
        self._streams[number] = passing
        try:
            async with self._backend.request(
                request.method,
                f"http://gateway{request.raw_path}",
                data=await request.read() or None,
                headers=headers,
                allow_redirects=False,
            ) as answer:
                await passing.begin(answer.status, answer.headers, answer.headers.get("content-length"))
                async for chunk in answer.content.iter_any():
                    await passing.relay(chunk)
            return await passing.finish()
        finally:
            del self._streams[number]

    async def obey(self, reader: asyncio.StreamReader) -> None:
        """Do what the gateway says until it is gone."""
        while (message := await receive(reader)) is not None:
            if (number := message.get("cancel")) is not None:
                if task := self._attempts.get(number):
                    task.cancel()
                continue
            number = message["attempt"]
            task = asyncio.create_task(self._attempt(number, message))
            self._attempts[number] = task
            task.add_done_callback(partial(self._over, number))

    def _over(self, number: int, _: "asyncio.Task[None]") -> None:
        del self._attempts[number]

    async def close(self) -> None:
        """Let go of the endpoints."""
        await self._backend.close()
        for opened in self._providers.values():
            if opened.done() and not opened.exception():
                await opened.result().close()

    async def _attempt(self, number: int, message: dict[str, Any]) -> None:
        begun = False

        async def sink(event: bytes) -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._tell({"attempt": number, "begun": True})
            if (passing := self._streams.get(message["stream"])) is not None:  # else the caller has gone
                with suppress(ConnectionError):
                    await passing.event(event)

        try:
            provider = await self._provider(message["spec"], message["secrets"])
            response = await provider.stream(request_of(message["request"]), sink)
        except (ModelError, ContextOverflow) as error:
            self._tell({"attempt": number, "error": error_json(error)})
        except InputError as error:
            self._tell({"attempt": number, "error": error_json(ModelError(FailureKind.MODEL_ERROR, str(error)))})
        except Exception as error:  # a fault of ours, of which the gateway has to hear: it would wait for ever
            words = f"the call broke the gateway: {type(error).__name__}: {error}"
            self._tell({"attempt": number, "error": error_json(ModelError(FailureKind.MODEL_ERROR, words))})
        else:
            self._tell({"attempt": number, "response": response_json(response)})

    async def _provider(self, spec: dict[str, Any], secrets: dict[str, str]) -> Provider:
        """An open provider, one for all attempts with the same specification."""
        key = repr(spec)
        if key not in self._providers:
            self._providers[key] = asyncio.create_task(_opened(ModelSpec.model_validate(spec), secrets))
        return await asyncio.shield(self._providers[key])

    def _tell(self, message: dict[str, Any]) -> None:
        send(self._control, message)


async def _opened(spec: ModelSpec, secrets: dict[str, str]) -> Provider:
    for scheme in {reference.partition(":")[0] for reference in secrets}:
        RESOLVERS[scheme] = partial(_told, secrets, scheme)
    provider = make_provider(spec)
    await provider.open()
    return provider


def _told(secrets: dict[str, str], scheme: str, name: str) -> str:
    return secrets[f"{scheme}:{name}"]


async def main(backend: str, descriptors: list[int]) -> None:
    """Serve until the parent closes our standard input, on which it first tells its secret."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(1, "wb"))
    control = asyncio.StreamWriter(transport, protocol, None, loop)
    sys.stdout = sys.stderr
    if (told := await receive(reader)) is None:
        return
    front = Front(backend, told["secret"], control)
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_route("*", "/{path:.*}", front.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    for descriptor in descriptors:
        await web.SockSite(runner, socket.socket(fileno=descriptor), backlog=4096).start()
    send(control, {"ready": True})
    await front.obey(reader)
    await runner.cleanup()
    await front.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], [int(number) for number in sys.argv[2:]]))
