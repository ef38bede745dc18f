"""A store's working folder and its bucket, kept equal run by run."""

import fcntl
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from gymflow.errors import InputError, RunIncomplete, RunLocked
from gymflow.store import lease
from gymflow.store.files import Files
from gymflow.store.layout import StoreLayout
from gymflow.store.remote import Depth
from gymflow.store.remote import record as records
from gymflow.store.remote.bucket import Bucket, Listed
from gymflow.store.remote.claim import LEASE, Claim, claimed
from gymflow.store.remote.fetching import Fetch
from gymflow.store.remote.record import Record
from gymflow.store.remote.sending import Send
from gymflow.store.remote.shared import Shared

log = logging.getLogger(__name__)

INTERVAL_S = 3.0
"""Time between two uploads of a run that is being written: what another machine lacks at most when this one dies."""
FRESH_S = 10.0
"""How long a process takes what it knows of the bucket for true when it only reads."""
_TRIES = 5
_FAILURES = (InputError, OSError, RuntimeError)
"""The last is what is raised when the interpreter ends and starts no thread any more."""
_RUNS_AT_ONCE = 4


class Mirror:
    """One store. Opening it lists the runs in the bucket: InputError where that fails."""

    def __init__(self, url: str, folder: Path) -> None:
        self.bucket = Bucket(url)
        self._layout = StoreLayout(folder)
        self._files = Files()
        self._kept = folder / ".remote"
        self._listing: dict[str, dict[str, Listed]] = {}
        self._listed_at = -FRESH_S
        self._listing_now = threading.Lock()
        self._fetched: dict[str, tuple[Depth, float]] = {}
        self._uploads: dict[str, Upload] = {}
        self.runs()
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
            self._layout.runs.mkdir(exist_ok=True)
            self._files.replace(self._kept / "url", url.encode())
        except OSError as error:
            raise _unwritable(folder, error) from error
        self.shared = Shared(self.bucket, self._layout, self._kept / "shared", self._files)

    def runs(self) -> list[str]:
        """The runs that are whole in the bucket."""
        with self._listing_now:
            if time.monotonic() - self._listed_at > FRESH_S:
                listing: dict[str, dict[str, Listed]] = {}
                for key, found in self.bucket.list("runs/").items():
                    run_id, _, name = key.removeprefix("runs/").partition("/")
                    listing.setdefault(run_id, {})[name] = found
                self._listing, self._listed_at = listing, time.monotonic()
        return [run_id for run_id, found in self._listing.items() if "run.json" in found and "manifest.json" in found]

    def fetch(self, run_id: str, depth: Depth) -> None:
        """Have of a run here what the bucket has; a run that this machine is writing is left alone."""
        before, at = self._fetched.get(run_id, (None, 0.0))
        known = max(depth, before or depth)
        if before == known and time.monotonic() - at < FRESH_S:
            return
        upload = self._uploads.get(run_id)
        if not lease.held(self._layout.run(run_id).lease) and (upload is None or upload.ended):
            self.runs()
            try:
                with self._alone(run_id):
                    self._fetch(run_id, depth)
            except OSError as error:
                raise _unwritable(self._layout.root, error) from error
        self._fetched[run_id] = known, time.monotonic()

    def fetch_all(self, run_ids: Iterable[str], depth: Depth) -> None:
        """The same of several, some at a time."""
        with ThreadPoolExecutor(_RUNS_AT_ONCE, thread_name_prefix="gymflow-runs") as pool:
            for _ in pool.map(lambda run_id: self.fetch(run_id, depth), run_ids):
                pass

    def note(self, run_id: str) -> None:
        """A run is made here, and is to be uploaded."""
        self._fetched[run_id] = Depth.ALL, time.monotonic()

    def claimed(self, run_id: str) -> bool:
        """Whether some machine writes a run."""
        self.runs()
        return LEASE in self._listing.get(run_id, ()) and claimed(self.bucket, run_id)

    def claim(self, run_id: str) -> "Upload":
        """Be the one writer of a run on all machines, and upload it from now on. Raises RunLocked, and InputError where another
        machine wrote the run since this one fetched it."""
        if (earlier := self._uploads.pop(run_id, None)) is not None:
            earlier.end()
        held = Claim(self.bucket, run_id)
        try:
            with self._alone(run_id):
                fetch = Fetch(self.bucket, self._layout.run(run_id), self._files)
                if fetch.changed(self._record(run_id), self._list(run_id), Depth.ALL):
                    raise InputError(f"run {run_id} was written on another machine just now; give the command again.")
        except BaseException:
            held.release()
            raise
        self.note(run_id)
        self._uploads[run_id] = Upload(self, run_id, held)
        return self._uploads[run_id]

    def push(self, run_id: str, held: Claim) -> None:
        """Upload what is new of a run that this process has the lease of."""
        with self._alone(run_id):
            self._send(run_id).whole(held, self.shared.send)

    def settle(self) -> None:
        """Upload what is not there yet of the runs that this process named. Raises RunIncomplete where that fails."""
        missing: list[str] = []
        told: dict[str, None] = {}
        for run_id in sorted(run_id for run_id, (depth, _) in self._fetched.items() if depth is Depth.ALL):
            try:
                self._settle(run_id)
            except _FAILURES as error:
                missing.append(run_id)
                told[str(error)] = None
        if missing:
            raise RunIncomplete(
                f"not all of run {', '.join(missing)} is in {self.bucket.url} yet; nothing is lost, it is in {self._layout.root}, "
                f"and the next command on the run tries again: {'; '.join(told)}"
            )

    def _settle(self, run_id: str) -> None:
        layout = self._layout.run(run_id)
        if not layout.document.exists() or lease.held(layout.lease):
            return
        if (upload := self._uploads.pop(run_id, None)) is not None:
            upload.end()
            if upload.error is not None:
                raise upload.error
        with self._alone(run_id):
            self._send(run_id).apart()
            if not records.unsent(layout, self._record(run_id)):
                return
        held = Claim(self.bucket, run_id)
        try:
            self.push(run_id, held)
        finally:
            held.release()

    def _fetch(self, run_id: str, depth: Depth) -> None:
        fetch = Fetch(self.bucket, self._layout.run(run_id), self._files)
        record, there = self._record(run_id), self._listing.get(run_id, {})
        if not fetch.changed(record, there, depth):
            return
        for _ in range(_TRIES):
            # Another process of this machine may have uploaded since the listing was made.
            there = self._list(run_id)
            if not fetch.changed(record, there, depth):
                return
            if (fresh := fetch.run(record, there, depth)) is not None:
                self._keep(run_id, fresh)
                return
        raise InputError(f"run {run_id} in {self.bucket.url} changes faster than it can be fetched; try again.")

    def _send(self, run_id: str) -> Send:
        layout, record = self._layout.run(run_id), self._record(run_id)
        return Send(self.bucket, layout, record, lambda changed: self._keep(run_id, changed))

    def _list(self, run_id: str) -> dict[str, Listed]:
        prefix = f"runs/{run_id}/"
        self._listing[run_id] = {key.removeprefix(prefix): one for key, one in self.bucket.list(prefix).items()}
        return self._listing[run_id]

    def _record(self, run_id: str) -> Record:
        return records.read_record(self._kept / f"{run_id}.json", self._layout.run(run_id).folder)

    def _keep(self, run_id: str, record: Record) -> None:
        records.write_record(self._kept / f"{run_id}.json", record, self._files)

    @contextmanager
    def _alone(self, run_id: str) -> Iterator[None]:
        """Processes of this machine share the folder."""
        with (self._kept / f"{run_id}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"{folder}: what is fetched from the store cannot be written there ({error.strerror or error}); mend that, or set "
        "XDG_CACHE_HOME to another folder"
    )


class Upload:
    """Uploads a run every few seconds in a thread, until `stop`."""

    def __init__(self, mirror: Mirror, run_id: str, held: Claim) -> None:
        self._mirror, self._run_id, self._held = mirror, run_id, held
        self._stop = threading.Event()
        self.error: Exception | None = None
        """What the last upload failed with."""
        self._thread = threading.Thread(target=self._work, name=f"gymflow-upload-{run_id}")
        self._thread.start()

    def stop(self) -> None:
        """Upload once more and give the lease back, in the thread."""
        self._stop.set()

    @property
    def ended(self) -> bool:
        """Whether it has uploaded for the last time."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """The same as `stop`, waiting for it."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._upload()
        finally:
            self._held.release()

    def _upload(self) -> None:
        ended = False
        while not ended:
            # Who ends without giving the lease back, such as a script whose loop was abandoned, must not wait for this thread.
            ended = self._stop.wait(INTERVAL_S) or not threading.main_thread().is_alive()
            try:
                self._mirror.push(self._run_id, self._held)
                self.error = None
            except _FAILURES as error:
                if self.error is None:
                    log.warning("run %s is not uploaded for now (%s)", self._run_id, error)
                self.error = error
                if isinstance(error, RunLocked):
                    return
