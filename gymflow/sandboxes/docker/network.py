"""The one way out of a container without network: a loopback port inside, carried to the model gateway's socket from outside."""

import asyncio
import socket
from pathlib import Path

from gymflow.sandboxes.docker.inside import inside
from gymflow.sandboxes.local.gateway import GATEWAY_PORT, serve_gateway


async def open_gateway(container_id: str, pid: int, gateway: Path) -> asyncio.Server:
    """Serve `GATEWAY_PORT` inside a container; closing the server ends it. Raises SandboxUnavailable."""
    return await serve_gateway(await inside(container_id, pid, "net", _listening), gateway)


def _listening() -> socket.socket:
    made = socket.socket()
    try:
        made.bind(("127.0.0.1", GATEWAY_PORT))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made
