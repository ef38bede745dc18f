"""The gateway's front process, as the gateway sees it: started when many streams run at once, watched, restarted, ended."""

import asyncio
import contextlib
import itertools
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from gymflow.contracts.outcome import FailureKind
from gymflow.models.base import ModelError, ModelRequest, ModelResponse, Provider, RemoteSink
from gymflow.models.front_wire import error_of, receive, request_json, response_of, send
from gymflow.models.front_worker import STREAM_HEADER as STREAM_HEADER
from gymflow.secrets import resolved_elsewhere

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
MAX_STARTS = 5
"""Starts without a minute of service between them, after which the gateway goes on alone."""
SERVED_S = 60.0


class Front:
    """A process that accepts on the gateway's sockets. When it dies, `on_death` hears why, and it is started again."""

    def __init__(
        self,
        sockets: list[socket.socket],
        backend: Path,
        *,
        on_death: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> None:
        """`backend`: the Unix socket that the gateway itself listens on. `on_end`: it could not be kept alive."""
        self._sockets, self._backend = sockets, backend
        self._on_death, self._on_end = on_death, on_end
        self._secret = secrets.token_urlsafe(24)
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: dict[int, tuple[RemoteStream, asyncio.Future[ModelResponse]]] = {}
        self._numbers = itertools.count()
        self._watch: asyncio.Task[None] | None = None
        self._closing = False

    async def start(self) -> None:
        """Start it and wait until it accepts. Raises OSError or TimeoutError."""
        await self._spawn()
        self._watch = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """End the process; idempotent."""
        self._closing = True
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None
        await self._reap()

    def stream_of(self, header: str | None) -> "RemoteStream | None":
        """The stream that a request which came through the process is to be answered on."""
        secret, _, number = (header or "").rpartition(".")
        if not secrets.compare_digest(secret.encode(), self._secret.encode()):
            return None
        return RemoteStream(self, int(number))

    async def attempt(self, stream: "RemoteStream", provider: Provider, request: ModelRequest) -> ModelResponse:
        """One attempt, made by the process. Raises ModelError or ContextOverflow."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise died("it is not running")
        spec = provider.remote_spec()
        number = next(self._numbers)
        answer: asyncio.Future[ModelResponse] = asyncio.get_running_loop().create_future()
        self._waiting[number] = stream, answer
        message = {"attempt": number, "stream": stream.number, "request": request_json(request)}
        send(process.stdin, message | {"spec": spec.model_dump(mode="json"), "secrets": resolved_elsewhere(spec)})
        try:
            return await answer
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, RuntimeError):
                send(process.stdin, {"cancel": number})
            raise
        finally:
            del self._waiting[number]

    async def _spawn(self) -> None:
        descriptors = [one.fileno() for one in self._sockets]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gymflow.models.front_worker",
            str(self._backend),
            *map(str, descriptors),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=descriptors,
            start_new_session=True,  # the terminal's Ctrl-C is for the gateway, which drains
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        send(
            self._process.stdin, {"secret": self._secret}
        )  # not among the arguments, which every user of the machine can read
        async with asyncio.timeout(START_TIMEOUT_S):
            if await receive(self._process.stdout) is None:
                raise OSError(f"the gateway's process did not start: {await self._reap()}")

    async def _keep(self) -> None:
        """Take its messages; when it ends, start it again."""
        loop = asyncio.get_running_loop()
        starts = 0
        while True:
            began = loop.time()
            await self._listen()
            reason = await self._reap()
            for _, answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(died(reason))
            self._on_death(reason)
            starts = 1 if loop.time() - began > SERVED_S else starts + 1
            try:
                if starts >= MAX_STARTS:
                    raise OSError(reason)
                await self._spawn()
            except (OSError, TimeoutError):
                await self._reap()
                return self._on_end()

    async def _listen(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        while (message := await receive(self._process.stdout)) is not None:
            stream, answer = self._waiting.get(message["attempt"], (None, None))
            if stream is None or answer is None or answer.done():
                continue  # given up meanwhile
            if message.get("begun"):
                stream.begun = True
            elif "error" in message:
                answer.set_exception(error_of(message["error"]))
            else:
                try:
                    answer.set_result(response_of(message["response"]))
                except (TypeError, ValueError, KeyError) as error:
                    answer.set_exception(error)

    async def _reap(self) -> str:
        """How the process ended; it is made to."""
        process, self._process = self._process, None
        if process is None:
            return "it is not running"
        if process.stdin is not None:
            process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await process.wait()
                    break
        code = process.returncode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


class RemoteStream(RemoteSink):
    """Where the front process writes the events of one caller's answer."""

    def __init__(self, front: Front, number: int) -> None:
        self.number = number
        self._front = front

    async def stream(self, provider: Provider, request: ModelRequest) -> ModelResponse:
        return await self._front.attempt(self, provider, request)


def died(reason: str) -> ModelError:
    """What a call under way comes to when the process ends."""
    return ModelError(FailureKind.MODEL_ERROR, f"the gateway's process ended ({reason})")
