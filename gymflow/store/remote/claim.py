"""The lease on a run across machines: the object `writer.lease`, made and renewed by conditional puts, so that of several who want
it one gets it. Its age is told by the service, so the clocks of the machines need not agree.
"""

import logging
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from gymflow.errors import InputError, RunLocked
from gymflow.store.files import alive
from gymflow.store.remote.bucket import Bucket, Read

log = logging.getLogger(__name__)

LEASE = "writer.lease"
LIFE_S = 90.0
"""How long a lease holds after its last renewal; it is renewed three times in that."""


class Claim:
    """Held from construction to `release`, and renewed by a thread meanwhile. Raises RunLocked, naming the owner."""

    def __init__(self, bucket: Bucket, run_id: str) -> None:
        self._bucket, self._run_id = bucket, run_id
        self._key = f"runs/{run_id}/{LEASE}"
        self._content = orjson.dumps(
            {"pid": os.getpid(), "host": socket.gethostname(), "machine": _machine(), "owner": uuid.uuid4().hex}
        )
        found = bucket.read(self._key)
        if found is not None and _holds(found):
            raise RunLocked(_told(run_id, found))
        etag = bucket.put_if(self._key, self._content, None if found is None else found.etag)
        if etag is None:
            raise RunLocked(_told(run_id, bucket.read(self._key)))
        self._etag, self._renewed = etag, time.monotonic()
        self._lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"gymflow-lease-{run_id}", daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Raises RunLocked where the lease ran out and another machine took over."""
        if self._lost:
            raise RunLocked(
                f"run {self._run_id}: the lease ran out and another machine writes the run now; what was sampled here since is "
                "set aside by the next command"
            )

    def release(self) -> None:
        """Give it back. One that may be another's by now is left to run out."""
        self._stop.set()
        self._thread.join()
        if not self._lost and time.monotonic() - self._renewed < LIFE_S / 2:
            with suppress(InputError):
                self._bucket.delete([self._key])

    def _renew(self) -> None:
        while not self._stop.wait(LIFE_S / 3):
            try:
                etag = self._bucket.put_if(self._key, self._content, self._etag)
            except InputError as error:
                log.warning("run %s: the lease is not renewed for now: %s", self._run_id, error)
                continue
            if etag is None:
                self._lost = True
                return
            self._etag, self._renewed = etag, time.monotonic()


def claimed(bucket: Bucket, run_id: str) -> bool:
    """Whether some machine writes the run."""
    found = bucket.read(f"runs/{run_id}/{LEASE}")
    return found is not None and _holds(found)


def _holds(found: Read) -> bool:
    owner: dict[str, Any] = orjson.loads(found.data)
    if owner["machine"] == _machine() and not alive(owner["pid"]):
        return False
    return found.age_s < LIFE_S


def _machine() -> str:
    """Within which a process id means one process."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # Linux alone tells; elsewhere the name has to do
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    return "/".join(parts)


def _told(run_id: str, found: Read | None) -> str:
    who = "another machine"
    if found is not None:
        owner = orjson.loads(found.data)
        who = f"process {owner['pid']} on {owner['host']}"
    return f"run {run_id} is being written by {who}; wait for it or stop it (if it died, its lease ends within {LIFE_S:.0f} s)."
