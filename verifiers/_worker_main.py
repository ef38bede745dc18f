"""The process side of `_workers`: reads jobs, writes values, until its pipe closes.

    python -P _worker_main.py gymflow.verifiers._patterns:last_match 5.0

Imports nothing but what the function needs. In particular `gymflow.verifiers` is a bare namespace here, so that its private modules
load without the contracts and pydantic: a process that is killed is replaced in a tenth of a second.
"""

import json
import os
import resource
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

MEMORY_LIMIT_BYTES = 2 * 1024**3
LENGTH = struct.Struct(">I")


def main(function: str, deadline_s: float) -> None:
    """Serve one function, `module:name`. A job of None is answered at once: it asks whether the process is ready."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not reach the pipe
    sys.set_int_max_str_digits(0)
    run = _load(function)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    except (ValueError, OSError):
        pass  # macOS does not limit address space
    while header := sys.stdin.buffer.read(LENGTH.size):
        job = json.loads(sys.stdin.buffer.read(LENGTH.unpack(header)[0]))
        _limit_cpu(deadline_s)
        body = json.dumps(_reply(run, job)).encode()  # ASCII, so that a lone surrogate passes
        replies.write(LENGTH.pack(len(body)) + body)
        replies.flush()


def _reply(run: Callable[[Any], Any], job: Any) -> dict[str, Any]:
    try:
        return {"value": None if job is None else run(job)}
    except MemoryError:
        return {"error": "the worker process ran out of memory"}
    except Exception as error:  # whatever a library raises is an undecided verdict, not a dead worker
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def _load(function: str) -> Callable[[Any], Any]:
    folder = Path(__file__).resolve().parent
    if function.startswith("gymflow.verifiers._"):
        for name in ("gymflow", "gymflow.verifiers"):
            namespace = sys.modules[name] = ModuleType(name)
            namespace.__path__ = [str(folder)]
    module, _, name = function.partition(":")
    run: Callable[[Any], Any] = getattr(import_module(module), name)
    return run


def _limit_cpu(deadline_s: float) -> None:
    """The kernel ends this process soon after the deadline, should nobody be left to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + deadline_s) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
