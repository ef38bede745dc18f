"""HTTP/1.1 to one origin, as the model call needs it: one request at a time on a kept-alive connection, the whole answer.

    connections = Connections("https://host:8000")
    status, headers, body = await connections.exchange(b"POST /v1/responses HTTP/1.1\\r\\n…\\r\\n", body)

A general client spends a quarter of a millisecond of CPU on what this does in a quarter of that, and a rollout may make hundreds
of calls. Proxies and streams are the general client's (`http.py`).
"""

import asyncio
import socket
import ssl
from functools import cache
from urllib.parse import urlsplit

from gymflow.models.http_answer import Answer, Reader

CONNECT_TIMEOUT_S = 10.0
IDLE_S = 60.0
"""Longest that an unused connection is trusted: firewalls forget silent ones without a word to either side."""
ADDRESSES_S = 300.0


class BrokenOff(OSError):
    """The answer ended before it was complete, or is not HTTP."""


class NoAnswer(OSError):
    """The connection was closed before anything of an answer came."""


class Connections:
    """As many connections as calls are under way at once; how many those are is bounded by whoever makes the calls."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for a URL without a host."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} has no host")
        self._host = parts.hostname.encode("idna").decode() if not parts.hostname.isascii() else parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = parts.scheme == "https"
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._addresses: list[str] = []
        self._resolved_at = 0.0
        self._resolving = asyncio.Lock()
        self._closed = False

    async def exchange(self, head: bytes, body: bytes) -> Answer:
        """One request and its answer. `head` ends in the empty line. Raises OSError: NoAnswer, BrokenOff, or no connection."""
        connection = self._reusable()
        if connection is not None:
            try:
                return await self._on(connection, head, body)
            except NoAnswer:
                # The server closed it as idle while the request was under way to it.
                if self._closed:
                    raise
        return await self._on(await self._connected(), head, body)

    async def close(self) -> None:
        """Close all connections; idempotent."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()

    async def _on(self, connection: "_Connection", head: bytes, body: bytes) -> Answer:
        self._busy.add(connection)
        try:
            answer = await connection.exchange(head, body)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._busy.discard(connection)
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.abort()
        return answer

    def _reusable(self) -> "_Connection | None":
        """The connection used last, which the server is least likely to close now."""
        while self._idle:
            connection = self._idle.pop()
            if connection.fresh():
                return connection
            connection.abort()
        return None

    async def _connected(self) -> "_Connection":
        """A new connection, to each address in turn; one that cannot be reached is not tried again before the next look-up."""
        loop = asyncio.get_running_loop()
        addresses = await self._look_up()
        while True:
            address = addresses[0]
            addresses.append(addresses.pop(0))
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    _, connection = await loop.create_connection(
                        _Connection,
                        address,
                        self._port,
                        ssl=_tls_context() if self._tls else None,
                        server_hostname=self._host if self._tls else None,
                    )
                    return connection
            except OSError:
                if address in addresses:
                    addresses.remove(address)
                if not addresses:
                    raise

    async def _look_up(self) -> list[str]:
        """The host's addresses, asked for once for all the connections that are made at the same time."""
        loop = asyncio.get_running_loop()
        async with self._resolving:
            if not self._addresses or loop.time() - self._resolved_at > ADDRESSES_S:
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                self._addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
                self._resolved_at = loop.time()
            return self._addresses


class _Connection(asyncio.Protocol):
    """One connection with at most one request under way."""

    def __init__(self) -> None:
        self.reusable = True
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._reader = Reader()
        self._used_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def exchange(self, head: bytes, body: bytes) -> "asyncio.Future[Answer]":
        assert self._transport is not None
        self._reader = Reader()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head + body)
        return self._answer

    def fresh(self) -> bool:
        """Whether an idle connection may be used again."""
        return self.reusable and asyncio.get_running_loop().time() - self._used_at < IDLE_S

    def abort(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nobody asked for anything
            return self.abort()
        try:
            answer = self._reader.feed(data)
        except ValueError as error:
            return self._fail(BrokenOff(str(error)))
        if answer is not None:
            self._finish(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.reusable = False
        if self._answer is None:
            return
        if not self._reader.begun:
            return self._fail(NoAnswer(str(error) if error else "the server closed the connection"))
        try:
            self._finish(self._reader.at_end())
        except ValueError as broken:
            self._fail(BrokenOff(str(error or broken)))

    def _finish(self, answer: Answer) -> None:
        assert self._transport is not None
        future, self._answer = self._answer, None
        # An answer that came before the whole request was sent leaves the connection in the middle of it.
        self.reusable = self.reusable and self._reader.keeps_alive and not self._transport.get_write_buffer_size()
        self._used_at = asyncio.get_running_loop().time()
        if future is not None and not future.done():
            future.set_result(answer)

    def _fail(self, error: OSError) -> None:
        future, self._answer = self._answer, None
        self.abort()
        if future is not None and not future.done():
            future.set_exception(error)


@cache
def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
