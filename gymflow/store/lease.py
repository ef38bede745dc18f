"""The lease on a run: one process writes it.

The lock is the operating system's (`flock`), so it ends with its owner however the owner ends; the file's content only
says who that is.
"""

import asyncio
import fcntl
import os
import socket
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from gymflow.errors import InputError, RunLocked
from gymflow.store.remote import mirror_of

if TYPE_CHECKING:
    from gymflow.store.remote.mirror import Upload

_held: "weakref.WeakSet[Lease]" = weakref.WeakSet()


class Lease:
    """Held from construction to `release`. Raises RunLocked, naming the owner, where another process (or another writer in
    this one) holds it, and InputError where the file system does not let it."""

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._upload: Upload | None = None
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"{path}: run {run_id} cannot be written ({error.strerror or error})") from error
        if not self._lock():
            owner = os.pread(self._descriptor, 4096, 0)
            self.release()
            raise RunLocked(f"run {run_id} is being written by {_describe(owner)}; wait for it or stop it.")
        me = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, orjson.dumps(me), 0)
        _held.add(self)

    def _lock(self) -> bool:
        for _ in range(5):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self._is_at_its_path()
            except OSError:
                time.sleep(0.01)  # a reader that asks `held` has the lock for microseconds
        return False

    def _is_at_its_path(self) -> bool:
        """A file that its owner removed between the opening and the lock keeps nobody out."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def claim(self) -> None:
        """Hold it on all machines, where the store is on a bucket, and upload what is written from now on; this asks the bucket,
        so a thread should. Raises RunLocked, naming the owner, where another machine holds it."""
        if (mirror := mirror_of(self._path)) is not None:
            self._upload = mirror.claim(self._run_id)
            if self._descriptor < 0:  # released meanwhile, by another thread
                self._upload.stop()

    async def uploaded(self) -> None:
        """Wait until the last upload after `release` has been made or has failed."""
        if self._upload is not None:
            await asyncio.to_thread(self._upload.end)

    def release(self, *, remove: bool = False) -> None:
        """Idempotent. `remove` takes the file away with it. What is not uploaded yet goes on its way."""
        if remove and self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._upload is not None:
            self._upload.stop()
        _held.discard(self)


def held(path: Path) -> bool:
    """Whether some process of this machine writes the run now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def being_written(path: Path) -> bool:
    """Whether some process writes the run now, wherever it is."""
    if held(path):
        return True
    mirror = mirror_of(path)
    return mirror is not None and mirror.claimed(path.parent.name)


def _describe(owner: bytes) -> str:
    try:
        known = orjson.loads(owner)
        since = datetime.fromtimestamp(known["since"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {known['pid']} on {known['host']} since {since}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "another process"


def _let_go_in_child() -> None:
    # A lock belongs to all who share the descriptor: a forked worker that outlives its parent must not keep it.
    for lease in list(_held):
        lease._upload = None  # its threads are the parent's
        lease.release()


os.register_at_fork(after_in_child=_let_go_in_child)
