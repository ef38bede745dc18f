"""Processes for work that may not end: a library's parser on model text, a regular expression from a dataset.

    pool = WorkerPool("gymflow.verifiers._symbolic:compare", deadline_s=5.0)
    answer = await pool.call({"gold": "1/2", "answer": "0.5"})

A job is JSON in and JSON out through pipes. A process that misses its deadline is killed and replaced; nothing else can
stop code that is stuck in C or in a long integer. Processes start at the first call, so a run that needs none pays for none.
"""

import asyncio
import json
import os
import struct
import sys
from importlib import import_module
from typing import Any

from gymflow.verifiers import VerifierError, VerifierTimeout

MEMORY_LIMIT_BYTES = 2 * 1024**3
START_DEADLINE_S = 60.0
_LENGTH = struct.Struct(">I")


class WorkerPool:
    """Runs one function, `module:name`, in up to `size` processes of its own (default: one a core, at most four)."""

    def __init__(self, function: str, *, deadline_s: float, size: int | None = None) -> None:
        self._function = function
        self._deadline_s = deadline_s
        self._slots = asyncio.Semaphore(size or min(4, os.cpu_count() or 1))
        self._idle: list[asyncio.subprocess.Process] = []
        self._closed = False

    async def call(self, job: Any) -> Any:
        """The function's value for `job`.

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

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gymflow.verifiers._workers",
            self._function,
            str(self._deadline_s),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
        )
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                reply = await _exchange(process, None)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            await _kill(process)
            raise VerifierError(f"a worker process for {self._function} did not start") from None
        if "error" in reply:
            await _kill(process)
            raise VerifierError(reply["error"])
        return process


def _environment() -> dict[str, str]:
    """No secrets: what handles model text gets the search path and nothing else."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV") if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


async def _exchange(process: asyncio.subprocess.Process, job: Any) -> dict[str, Any]:
    body = json.dumps(job).encode()  # ASCII, so that a lone surrogate passes
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(_LENGTH.pack(len(body)) + body)
    await process.stdin.drain()
    (size,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
    reply: dict[str, Any] = json.loads(await process.stdout.readexactly(size))
    return reply


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
    await process.wait()


def _serve(function: str, deadline_s: float) -> None:
    """The process's side: read a job, write its value, until the pipe closes."""
    import resource

    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not reach the pipe
    jobs = sys.stdin.buffer
    module, _, name = function.partition(":")
    run = getattr(import_module(module), name)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    except (ValueError, OSError):
        pass  # macOS does not limit address space
    sys.set_int_max_str_digits(0)
    while header := jobs.read(_LENGTH.size):
        job = json.loads(jobs.read(_LENGTH.unpack(header)[0]))
        _limit_cpu(deadline_s)
        try:
            reply = {"value": run(job) if job is not None else None}
        except MemoryError:
            reply = {"error": "the worker process ran out of memory"}
        except Exception as error:  # whatever a library raises is an undecided verdict, not a dead worker
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        body = json.dumps(reply).encode()
        replies.write(_LENGTH.pack(len(body)) + body)
        replies.flush()


def _limit_cpu(deadline_s: float) -> None:
    """The kernel ends this process soon after the deadline, should nobody be left to kill it."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + deadline_s) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    _serve(sys.argv[1], float(sys.argv[2]))
