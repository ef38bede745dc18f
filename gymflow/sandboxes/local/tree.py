"""Ends a tree of processes where there are no control groups: by a mark in the environment, which children inherit also
through `setsid` and double forks. A program that clears its environment escapes it until the sandbox is stopped."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

ROUNDS = 200


async def end_marked(name: str, value: str) -> None:
    """SIGKILL to every process whose environment holds name=value, until none is left."""
    wanted = f"{name}={value}".encode()
    for _ in range(ROUNDS):
        found = [pid for pid in _processes() if wanted in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.002)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
