"""Further processes that score stored rollouts, for verifiers that compute: those hold one core while the others are idle.

Batches of stored rollouts go to the processes, and verdicts as the journal's text come back; whoever has the run's lease makes
them durable. A process that ends loses nothing: what it was given is handed back, to be scored here.
"""

import copyreg
import io
import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gymflow.contracts.run import VerdictSet
from gymflow.runtime.components import RunEnvironment
from gymflow.runtime.rejudging import Change
from gymflow.store.layout import RunLayout, StoreLayout
from gymflow.store.planned import TaskTable
from gymflow.store.stored import StoredRollout
from gymflow.store.verdict_rows import VerdictRows

log = logging.getLogger(__name__)

SIZE = min(4, (os.cpu_count() or 1) - 1)
"""Processes beside this one, which has to read and to write for all of them."""
WORTH_S = 5.0
"""CPU seconds left from which on processes are started: each takes more than one to import what it needs."""
_AHEAD = 2
"""Batches that are given to a process before it has answered the first."""
_POLL_S = 0.5

Batch = Sequence[StoredRollout]


@dataclass(frozen=True, slots=True)
class Order:
    """What a process needs to make the same verifiers."""

    root: Path
    run_id: str
    search_dirs: tuple[Path, ...]
    change: Change
    completed: VerdictSet | None
    verdict_set: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A batch with its verdicts; None where no process scored it."""

    batch: Batch
    verdicts: VerdictRows | None


class Pace:
    """How rollouts are scored in this process, from now on: `total` of them."""

    def __init__(self, total: int) -> None:
        self._left, self._done = total, 0
        self._began, self._used = time.monotonic(), time.thread_time()

    def count(self, scored: int) -> None:
        """So many more were scored."""
        self._left -= scored
        self._done += scored

    @property
    def computing(self) -> bool:
        """Whether further processes would help: not where verifiers wait, nor where the rest is done before they are there."""
        used = time.thread_time() - self._used
        busy = used > (time.monotonic() - self._began) / 2
        return SIZE > 0 and self._done > 0 and busy and used / self._done * self._left > WORTH_S


def judged_digests(environments: Mapping[str, RunEnvironment]) -> dict[str, str]:
    """By environment, what judges in it."""
    return {label: environment.judged_digest for label, environment in environments.items()}


class VerdictPool:
    """Processes for one rescoring. Those whose verifiers are not judged by the digests in `judged` are not asked."""

    def __init__(self, order: Order, judged: Mapping[str, str]) -> None:
        self._batches: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._out = 0
        self._workers: list[_Worker] = []
        try:
            for _ in range(SIZE):
                self._workers.append(_Worker(order, judged, self._batches, self._answers))
        except OSError as error:  # the machine gives no further process
            log.warning("verdicts are computed by %d processes: %s", len(self._workers) + 1, error)

    def take(self, batch: Batch) -> bool:
        """Whether a process is going to score a batch."""
        if self._out >= _AHEAD * sum(worker.ready for worker in self._workers):
            return False
        self._out += 1
        self._batches.put(batch)
        return True

    def answer(self, *, wait: bool = False) -> Answer | None:
        """What came of a batch that was taken. None: nothing yet, or with `wait` nothing more."""
        while self._out:
            alive = any(worker.is_alive() for worker in self._workers)
            try:
                answer = self._answers.get(timeout=_POLL_S) if wait and alive else self._answers.get_nowait()
            except queue.Empty:
                if alive and wait:
                    continue
                if alive:
                    return None
                answer = Answer(self._batches.get_nowait() or (), None)
            self._out -= 1
            return answer
        return None

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.end()
            self._batches.put(None)
        for worker in self._workers:
            worker.join()


class _Worker(threading.Thread):
    """One process, and the thread that talks with it: the event loop may be computing verdicts itself."""

    def __init__(
        self,
        order: Order,
        judged: Mapping[str, str],
        batches: "queue.SimpleQueue[Batch | None]",
        answers: "queue.SimpleQueue[Answer]",
    ) -> None:
        super().__init__(name="gymflow-verdicts", daemon=True)
        self._order, self._judged, self._batches, self._answers = order, judged, batches, answers
        self.ready = False
        self._ended = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gymflow.runtime.verdict_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            start_new_session=True,  # Ctrl-C is for the command, which ends its processes
        )
        self.start()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._ended = True
        self._process.kill()

    def run(self) -> None:
        """Serve until `end`, or until the process cannot."""
        try:
            if self._asked(self._order) == self._judged:
                self.ready = True
                self._serve()
            else:
                log.warning("the code of a verifier has changed meanwhile: the rest is scored as it was before")
        except Exception as error:
            if not self._ended:
                what = "it ended" if isinstance(error, EOFError) else f"{type(error).__name__}: {error}"
                log.warning("verdicts are computed by one process less: %s", what)
        finally:
            self.ready = False
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def _serve(self) -> None:
        while (batch := self._batches.get()) is not None:
            verdicts = None
            try:
                verdicts = self._asked(batch)
            finally:
                self._answers.put(Answer(batch, verdicts))

    def _asked(self, what: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(pickled(what, StoreLayout(self._order.root).run(self._order.run_id)))
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)


def pickled(what: Any, layout: RunLayout) -> bytes:
    """The bytes for the other side, which reads the run's tasks itself."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {TaskTable: lambda _: (_tasks_of, (layout,))}
    pickler.dump(what)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def _tasks_of(layout: RunLayout) -> TaskTable:
    return TaskTable(layout)
