"""Processes for work that may not end: a library's parser on model text, a regular expression from a dataset.

    pool = WorkerPool("gymflow.verifiers._patterns:last_match", deadline_s=5.0)
    letter = await pool.call({"pattern": "answer: (.)", "text": "Answer: C"})

A job is JSON in and JSON out through pipes. A process that misses its deadline is killed and replaced; nothing else can
stop code that is stuck in C or in a long integer. Processes start at the first call, so a run that needs none pays for none.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

from gymflow.verifiers._worker_main import LENGTH

from gymflow.verifiers import VerifierError, VerifierTimeout

START_DEADLINE_S = 60.0
_MAIN = Path(__file__).with_name("_worker_main.py")


class WorkerPool:
    """Runs one function, `module:name`, in up to `size` processes of its own (default: one a core, at most four)."""

    def __init__(self, function: str, *, deadline_s: float, size: int | None = None) -> None:
        self._function = function
        self._deadline_s = deadline_s
        self._slots = asyncio.Semaphore(size or min(4, os.cpu_count() or 1))
        self._idle: list[Process] = []
        self._closed = False

    async def call(self, job: Any) -> Any:
        """The function's value for `job`, which is JSON and not None.

        Raises VerifierTimeout past the deadline, and VerifierError where the function raised, ran out of memory or
        took its process down with it.
        """
        async with self._slots:
            process = self._idle.pop() if self._idle else await self._start()
            reusable = False
            try:
                async with asyncio.timeout(self._deadline_s):
                    reply = await _exchange(process, job)
                reusable = "error" not in reply and not self._closed
            except TimeoutError:
                raise VerifierTimeout(f"no verdict within {self._deadline_s:g} s") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                raise VerifierError("the worker process ended without an answer (out of memory, or a crash)") from None
            finally:
                if reusable:
                    self._idle.append(process)
                else:
                    await _kill(process)
        if "error" in reply:
            raise VerifierError(reply["error"])
        return reply["value"]

    async def close(self) -> None:
        """End the idle processes; a busy one ends with its job. Idempotent."""
        self._closed = True
        while self._idle:
            await _kill(self._idle.pop())

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(_MAIN), self._function, str(self._deadline_s)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the run, which lets what is running finish
        )
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await _exchange(process, None)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            await _kill(process)
            raise VerifierError(f"a worker process for {self._function} did not start") from None
        except BaseException:
            await _kill(process)
            raise
        return process


def _environment() -> dict[str, str]:
    """No secrets: what handles model text gets the search paths and little else."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


async def _exchange(process: Process, job: Any) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    body = json.dumps(job).encode()  # ASCII, so that a lone surrogate passes
    process.stdin.write(LENGTH.pack(len(body)) + body)
    await process.stdin.drain()
    (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    reply: dict[str, Any] = json.loads(await process.stdout.readexactly(size))
    return reply


async def _kill(process: Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
    await process.wait()
