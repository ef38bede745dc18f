"""The one way out of a sandbox without network: a loopback port inside, carried to the model gateway's Unix socket."""

import asyncio
import contextlib
import socket
from pathlib import Path

GATEWAY_PORT = 8181
BLOCK = 1 << 16


async def serve_gateway(listening: socket.socket, gateway: Path) -> asyncio.Server:
    """Serve a socket that listens inside a sandbox; closing the server ends it."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(str(gateway))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    return await asyncio.start_server(carry, sock=listening)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while block := await source.read(BLOCK):
            sink.write(block)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
    except OSError:
        with contextlib.suppress(OSError):
            sink.close()
    finally:
        if source.at_eof() and sink.is_closing():
            sink.close()
