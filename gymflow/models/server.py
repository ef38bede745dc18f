"""The gateway over HTTP, for harnesses that run elsewhere: Responses, Chat Completions and Anthropic Messages.

    server = GatewayServer()
    await server.open()
    admission = server.admit(client)
    run_harness(base_url=admission.url + "/v1")     # Claude Code wants it without /v1
    admission.close()

Each rollout has a path with a token that nobody can guess, so that no harness sees the real key or another rollout. An endpoint
that speaks the caller's dialect gets the request as it is, and its stream is passed on as it arrives; any other one gets it
converted, and the caller a stream made of the whole answer, with signs of life until it is there.
"""

import asyncio
import logging
import secrets
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from gymflow.contracts.model import Sampling
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.errors import RolloutFailure, RunIncomplete, StopEpisode
from gymflow.models import wire
from gymflow.models.asked import check
from gymflow.models.base import Dialect, ModelError, ModelRequest, ModelResponse, Sink, SinkClosed
from gymflow.models.dialects import DialectError
from gymflow.models.dialects.foreign_tools import ForeignTools, as_functions
from gymflow.models.front import STREAM_HEADER, Front, RemoteStream, died
from gymflow.models.serving import SERVED, ServedDialect, inject_sampling

log = logging.getLogger(__name__)

STREAMS_HERE = 32
"""Streams at once beyond which a process of their own takes them, so that a chunk never waits for what the run does meanwhile."""
CUT_S = 2.0
"""A connection that broke off at most so long before the front process was found dead broke off with it."""
BACKLOG = 4096
HEADERS_AFTER_S = 0.3
"""A stream's headers go out after this, so that an early failure can still be told by its HTTP status."""
KEEP_ALIVE_S = 5.0
MAX_BODY = 256 * 1024 * 1024
ENDED = "rollout_ended"

_STATUS = {FailureKind.MODEL_RATE_LIMITED: 429, FailureKind.MODEL_TIMEOUT: 504, FailureKind.MODEL_UNREACHABLE: 502}


class Calls(Protocol):
    """What answers a rollout's model calls: its `ModelClient`, or who counts turns before that."""

    async def create(self, request: ModelRequest, *, sink: Sink | None = None) -> ModelResponse:
        """One call. Raises as `ModelClient.create` does."""
        ...

    def dialect(self) -> Dialect | None:
        """The dialect in which requests can be passed on as they are."""
        ...


@dataclass(eq=False)
class Admission:
    """One rollout's way in. `ended` is set when it may make no more calls, and `outcome` then says why."""

    server: "GatewayServer"
    token: str
    client: Calls
    sampling: Sampling
    served_name: str
    lasting: bool = False
    """Whether a failed call leaves it open: where what it serves is no rollout, but programs that know nothing of each other."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: StopEpisode | RolloutFailure | RunIncomplete | None = None
    refused: str | None = None
    """Why the last request was refused as one that makes no sense; None where it was not."""

    @property
    def path(self) -> str:
        """The path of its requests, for whoever reaches the server by another address."""
        return f"/rollouts/{self.token}"

    @property
    def url(self) -> str:
        """Base URL without `/v1`."""
        return self.server.url + self.path

    def end(self, outcome: StopEpisode | RolloutFailure | RunIncomplete) -> None:
        """Remember the first reason, and refuse all further calls."""
        if self.outcome is None and not self.lasting:
            self.outcome = outcome
            self.ended.set()

    def close(self) -> None:
        """Let no request with this token in any more."""
        self.server.dismiss(self)


class GatewayServer:
    """Listens on a TCP port and, for sandboxes without a network, on a Unix socket."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        socket_path: Path | None = None,
        public_url: str | None = None,
        routes: Iterable[web.AbstractRouteDef] = (),
    ) -> None:
        """`public_url`: what remote sandboxes reach this server by. `routes`: what it serves besides, such as tools over MCP."""
        self._routes = list(routes)
        self._host, self._port, self._socket_path, self._public_url = host, port, socket_path, public_url
        self._admitted: dict[str, Admission] = {}
        self._busy: Counter[Admission] = Counter()
        self._cut: dict[Admission, float] = {}
        self._runner: web.AppRunner | None = None
        self._sockets: list[socket.socket] = []
        self._sites: list[web.SockSite] = []
        self._streams = 0
        self._front: Front | None = None
        self._fronting: asyncio.Task[None] | None = None
        self._folder: Path | None = None
        self.url = ""

    async def open(self) -> None:
        """Listen."""
        app = web.Application(client_max_size=MAX_BODY)
        for prefix in ("/rollouts/{token}", "/rollouts/{token}/v1"):
            app.router.add_get(f"{prefix}/models", self._models)
            app.router.add_get(f"{prefix}/models/{{name:.+}}", self._models)
            for path, dialect in SERVED.items():
                app.router.add_post(prefix + path, _bound(self._call, dialect))
        app.router.add_get("/rollouts/{token}", self._alive)
        app.router.add_routes(self._routes)
        app.router.add_route("*", "/{path:.*}", self._lost)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._sockets.append(socket.create_server((self._host, self._port), family=family, backlog=BACKLOG))
        if self._socket_path is not None:
            self._sockets.append(unix_socket(self._socket_path))
        await self._accept()
        port = self._sockets[0].getsockname()[1]
        self.url = self._public_url or f"http://{self._host}:{port}"

    async def close(self) -> None:
        """Stop listening and cancel what is under way; idempotent."""
        if self._fronting is not None:
            self._fronting.cancel()
            await asyncio.wait([self._fronting])
            self._fronting = None
        if self._front is not None:
            await self._front.close()
            self._front = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        for listening in self._sockets:
            listening.close()
        self._sockets.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def _accept(self) -> None:
        """Take callers' connections in this process. The sockets stay ours, to be accepted on elsewhere later."""
        assert self._runner is not None
        self._sites = [web.SockSite(self._runner, one.dup(), backlog=BACKLOG) for one in self._sockets]
        for site in self._sites:
            await site.start()

    def _crowded(self) -> None:
        """Leave the callers to a process of their own once they are many; it keeps them until this server is closed."""
        if self._front is None and self._fronting is None and self._streams > STREAMS_HERE:
            self._fronting = asyncio.create_task(self._start_front())

    async def _start_front(self) -> None:
        assert self._runner is not None
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="gymflow-front-"))
            backend = web.SockSite(self._runner, unix_socket(self._folder / "s"), backlog=BACKLOG)
            await backend.start()
        front = Front(self._sockets, self._folder / "s", on_death=self._front_died, on_end=self._front_ended)
        self._front = front
        try:
            await front.start()
        except (OSError, TimeoutError) as error:
            log.warning("the gateway goes on without a process for its streams: %s", error)
            await front.close()
            return
        for site in self._sites:
            await site.stop()
        self._sites = []

    def _front_died(self, reason: str) -> None:
        """The rollouts whose calls were under way have lost them; the others reconnect."""
        log.warning("the gateway's process for streams ended (%s) and is started again", reason)
        failure = died(reason)
        lately = asyncio.get_running_loop().time() - CUT_S
        for admission in {*self._busy, *(one for one, at in self._cut.items() if at > lately)}:
            admission.end(RolloutFailure(failure.kind, failure.message, cause=failure))

    def _front_ended(self) -> None:
        log.warning("the gateway goes on without a process for its streams")
        self._fronting = asyncio.create_task(self._accept())

    def admit(
        self, client: Calls, *, sampling: Sampling | None = None, served_name: str = "policy", lasting: bool = False
    ) -> Admission:
        """Let a rollout in. `sampling` wins over whatever the harness asks for; `served_name` is what `/models` lists; `lasting`:
        that a call fails is no reason to refuse the next one."""
        token = secrets.token_urlsafe(24)
        admission = Admission(self, token, client, sampling or Sampling(), served_name, lasting)
        self._admitted[admission.token] = admission
        return admission

    def dismiss(self, admission: Admission) -> None:
        """Forget a rollout; idempotent."""
        self._admitted.pop(admission.token, None)
        self._cut.pop(admission, None)

    def _admission(self, request: web.Request) -> Admission | None:
        return self._admitted.get(request.match_info["token"])

    async def _alive(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self._admission(request) else 404)

    async def _lost(self, request: web.Request) -> web.Response:
        served = ", ".join(SERVED)
        return _error(_caller(request), 404, f"there is no {request.method} {request.path}; POST to {served}")

    async def _models(self, request: web.Request) -> web.Response:
        admission = self._admission(request)
        if admission is None:
            return _error(_caller(request), 404, "there is no such rollout")
        model = {"id": admission.served_name, "object": "model", "type": "model", "created": 0, "owned_by": "gymflow"}
        if name := request.match_info.get("name"):
            return _json(200, model | {"id": name})
        return _json(200, {"object": "list", "data": [model], "has_more": False})

    async def _call(self, request: web.Request, dialect: ServedDialect) -> web.StreamResponse:
        admission = self._admission(request)
        if admission is None:
            return _error(dialect, 404, "there is no such rollout, or it has ended")
        try:
            body = wire.loads(await request.read())
            if not isinstance(body, dict):
                raise DialectError("the body must be a JSON object")
            asked, tools = prepare(body, dialect, admission)
        except web.HTTPException as error:
            return _error(dialect, error.status, error.reason)
        except Exception as error:  # decoding is all that was done: whatever went wrong, the body is why
            admission.refused = str(error) if isinstance(error, ValueError) else f"the request is malformed: {error!r}"
            return _error(dialect, 400, admission.refused)
        admission.refused = None
        if admission.outcome is not None:
            return _error(
                dialect, 400, f"this rollout has ended and may make no more calls: {admission.outcome}", ENDED
            )
        model = str(body.get("model") or admission.served_name)
        self._busy[admission] += 1
        try:
            if body.get("stream"):
                return await self._stream(request, asked, _Streamed(request, dialect, admission, model, tools, body))
            response = await admission.client.create(asked)
            return _json(200, _answer(response, dialect, model, tools))
        except asyncio.CancelledError:
            self._cut[admission] = asyncio.get_running_loop().time()
            raise
        except Exception as error:
            return _error(dialect, *explained(error, admission))
        finally:
            self._busy[admission] -= 1
            self._busy += Counter()  # forgets those at zero

    async def _stream(self, request: web.Request, asked: ModelRequest, answer: "_Streamed") -> web.StreamResponse:
        self._streams += 1
        self._crowded()
        try:
            remote = self._front.stream_of(request.headers.get(STREAM_HEADER)) if self._front else None
            return await answer.run(asked, remote)
        finally:
            self._streams -= 1


class _Streamed:
    """One streamed answer."""

    def __init__(
        self,
        request: web.Request,
        dialect: ServedDialect,
        admission: Admission,
        model: str,
        tools: ForeignTools,
        body: dict[str, Any],
    ) -> None:
        self._request, self._dialect, self._admission = request, dialect, admission
        self._model, self._tools, self._body = model, tools, body
        self._response: web.StreamResponse | None = None
        self._writing = asyncio.Lock()

    async def run(self, asked: ModelRequest, remote: RemoteStream | None) -> web.StreamResponse:
        """`remote`: where the front process writes the answer to, if the request came through it."""
        sink: Sink | None = (remote or self._write) if asked.native is not None else None
        call = asyncio.ensure_future(self._admission.client.create(asked, sink=sink))
        try:
            await self._keep_alive(call)
            answer = await call
            if sink is None:
                for event in self._dialect.encode_stream(_restored(answer, self._tools), self._model, self._body):
                    await self._write(event)
        except SinkClosed:
            pass
        except Exception as error:
            status, words, code = explained(error, self._admission)
            if self._response is None and not (remote and remote.begun):
                return _error(self._dialect, status, words, code)
            with suppress(SinkClosed):
                await self._write(self._dialect.encode_error_events(status, words, code))
        finally:
            call.cancel()
        if self._response is None:
            # The front process has written it all, or nobody is there to read it.
            return web.Response(status=200 if remote else 499, content_type="text/event-stream")
        with suppress(ConnectionError):
            await self._response.write_eof()
        return self._response

    async def _keep_alive(self, call: "asyncio.Future[ModelResponse]") -> None:
        """Headers soon, then a comment now and then: some clients wait for ever for headers, others give up in silence."""
        wait = HEADERS_AFTER_S
        while not (await asyncio.wait([call], timeout=wait))[0]:
            await self._write(b": waiting for the model\n\n")
            wait = KEEP_ALIVE_S

    async def _write(self, event: bytes) -> None:
        try:
            async with self._writing:
                if self._response is None:
                    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
                    self._response = web.StreamResponse(headers=headers)
                    await self._response.prepare(self._request)
                await self._response.write(event)
        except ConnectionError as error:
            raise SinkClosed from error


def prepare(body: dict[str, Any], dialect: ServedDialect, admission: Admission) -> tuple[ModelRequest, ForeignTools]:
    """The model request that a caller's body amounts to, with the run's sampling put in. Raises DialectError."""
    asked = dialect.decode_request(body)
    check(asked)
    if not isinstance(body.get("stream"), bool | None):
        raise DialectError("`stream` must be true or false")
    asked.seed = None
    if given := admission.sampling.given:
        asked.sampling = asked.sampling.model_copy(update=given)
    if admission.client.dialect() == dialect.name:
        asked.native = dialect.name, inject_sampling(body, dialect.name, admission.sampling)
        return asked, ForeignTools()
    asked, tools = as_functions(asked)
    # What another dialect's endpoint would make of fields that nobody here knows is anyone's guess.
    asked.extra = {}
    return asked, tools


def explained(error: Exception, admission: Admission) -> tuple[int, str, str | None]:
    """HTTP status, words and code for the caller; also ends the rollout where no further call can help it. What nobody foresaw is
    a failure of the gateway, and so the rollout's infrastructure."""
    if isinstance(error, StopEpisode):
        if error.reason is StopReason.CONTEXT_OVERFLOW:
            # Not the end: many harnesses answer it by compacting the history.
            return 400, error.detail, "context_length_exceeded"
        admission.end(error)
        return 400, f"this rollout may make no more calls: {error}", "budget_exhausted"
    if isinstance(error, RunIncomplete):
        admission.end(error)
        return 503, str(error), "run_ended"
    if not isinstance(error, RolloutFailure):
        log.error("the gateway failed at a call", exc_info=error)
        words = f"the gateway failed: {type(error).__name__}: {error}"
        admission.end(RolloutFailure(FailureKind.MODEL_ERROR, words, cause=error))
        return 500, words, FailureKind.MODEL_ERROR.value
    admission.end(error)
    return _status(error), error.message, error.kind.value


def _status(failure: RolloutFailure) -> int:
    """The HTTP status that tells of a failed call."""
    cause = failure.__cause__
    if isinstance(cause, ModelError) and cause.status is None and isinstance(cause.__cause__, TypeError | ValueError):
        return 400  # it was never sent: the endpoint's dialect cannot say what was asked
    status = cause.status if isinstance(cause, ModelError) else None
    return _STATUS.get(failure.kind, status if status is not None and 400 <= status < 500 else 502)


def _answer(response: ModelResponse, dialect: ServedDialect, model: str, tools: ForeignTools) -> dict[str, Any]:
    if response.native is not None:
        return {**response.native, "model": model}
    return dialect.encode_response(_restored(response, tools), model)


def _restored(response: ModelResponse, tools: ForeignTools) -> ModelResponse:
    if not (tools.namespaced or tools.custom):
        return response
    return replace(response, output=tools.restored(response.output))


def _json(status: int, payload: Any, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=wire.dumps(payload), content_type="application/json", headers=headers)


def _error(dialect: ServedDialect, status: int, words: str, code: str | None = None) -> web.Response:
    # The gateway has retried what can be retried; SDKs read this header.
    return _json(status, dialect.encode_error(status, words, code), {"x-should-retry": "false"})


def _caller(request: web.Request) -> ServedDialect:
    """Whose errors a caller understands that asked for something which is not there."""
    claude = "/messages" in request.path or "anthropic-version" in request.headers
    return SERVED["/messages" if claude else "/chat/completions"]


def unix_socket(path: Path) -> socket.socket:
    """A Unix socket that is bound and can be accepted on."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    return listening


def _bound(handler: Any, dialect: ServedDialect) -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(request, dialect)
        return answer

    return handle
