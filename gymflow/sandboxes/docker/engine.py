"""The Docker Engine API, as far as sandboxes need it: a dozen calls over the daemon's socket.

Plain HTTP and not the SDK: its exec stream takes a minute and a half for 50 MB, this one a third of a second.
API: https://docs.docker.com/reference/api/engine/ (1.41 and later).
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp

from gymflow.sandboxes.errors import SandboxError, SandboxUnavailable

VERSION = "v1.41"
CALL_S = 120.0
BLOCK = 1 << 18


class EngineError(Exception):
    """The daemon refused a call. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Engine:
    """One daemon. `host`: `unix:///path` or `tcp://host:port`; default: DOCKER_HOST, else the usual socket."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        self._address = urlsplit(self.host)
        self._session: aiohttp.ClientSession | None = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector: aiohttp.BaseConnector | None = None
            if self._address.scheme == "unix":
                connector = aiohttp.UnixConnector(self._address.path, limit=0)
            elif self._address.scheme != "tcp":
                raise SandboxUnavailable(f"DOCKER_HOST={self.host}: only unix:// and tcp:// are understood")
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=CALL_S))
        return self._session

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        data: bytes | AsyncIterator[bytes] | None = None,
        timeout_s: float = CALL_S,
    ) -> Any:
        """One call; its JSON answer, or None. Raises EngineError, and SandboxUnavailable where no daemon answers."""
        netloc = self._address.netloc or "docker"
        try:
            async with self._client().request(
                method,
                f"http://{netloc}/{VERSION}{path}",
                params=query,
                json=body,
                data=data,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as response:
                content = await response.read()
        except (OSError, aiohttp.ClientError) as error:
            raise SandboxUnavailable(f"no Docker daemon answers at {self.host}: {error}", cause=error) from error
        except TimeoutError as error:
            raise SandboxError(f"the Docker daemon did not answer within {timeout_s:.0f} s ({path})") from error
        if response.status >= 400:
            raise EngineError(response.status, _message(content))
        try:
            return json.loads(content) if content else None
        except ValueError:
            return content.decode(errors="replace")

    async def exec_stream(self, exec_id: str) -> "ExecStream":
        """Start an exec and take over its connection: the only way to end its input and keep reading."""
        if self._address.scheme == "unix":
            reader, writer = await asyncio.open_unix_connection(self._address.path, limit=BLOCK)
        else:
            reader, writer = await asyncio.open_connection(
                self._address.hostname, self._address.port or 2375, limit=BLOCK
            )
        body = b'{"Detach":false,"Tty":false}'
        writer.write(
            f"POST /{VERSION}/exec/{quote(exec_id)}/start HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
            f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            writer.close()
            raise SandboxError("the Docker daemon closed the connection of a command", cause=error) from error
        status = int(head.split(b" ", 2)[1])
        if status not in (101, 200):
            content = await reader.read(4096)
            writer.close()
            raise EngineError(status, _message(content))
        return ExecStream(reader, writer)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class ExecStream:
    """A running exec's input and output."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def feed(self, stdin: bytes) -> None:
        """Write the input and end it."""
        try:
            for start in range(0, len(stdin), BLOCK):
                self._writer.write(stdin[start : start + BLOCK])
                await self._writer.drain()
            self._writer.write_eof()
        except (ConnectionError, RuntimeError):
            pass  # the command did not want to read it all

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        """(stream, bytes): 1 is stdout, 2 stderr."""
        while True:
            try:
                header = await self._reader.readexactly(8)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            left = int.from_bytes(header[4:], "big")
            while left:
                block = await self._reader.read(min(left, BLOCK))
                if not block:
                    return
                left -= len(block)
                yield header[0], block

    def close(self) -> None:
        self._writer.close()


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace")[:500]
