"""A store: its runs, and how they are found by name."""

import contextlib
import logging
import os
import shutil
import socket
from collections.abc import Collection, Iterable
from pathlib import Path

from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.run import RunDocument
from gymflow.errors import InputError
from gymflow.store import plan as plans
from gymflow.store.artifacts import Artifacts
from gymflow.store.files import Files, alive, local_root
from gymflow.store.intact import require_intact
from gymflow.store.judgements import Judgements
from gymflow.store.layout import StoreLayout, check_run_id, leftover
from gymflow.store.manifest import RunManifest, read_document, write_manifest
from gymflow.store.reader import RunReader
from gymflow.store.remote import Depth, mirror_of
from gymflow.store.writer import RunWriter
from gymflow.suggest import did_you_mean

log = logging.getLogger(__name__)


class Store:
    """Opens a store; nothing is created before the first run is."""

    def __init__(self, root: str | Path, *, files: Files | None = None) -> None:
        self.layout = StoreLayout(local_root(root))
        self._files = files or Files()
        self._mirror = mirror_of(self.layout.runs)
        self.artifacts = Artifacts(self.layout.artifacts, self._files)
        self.judgements = Judgements(self.layout.judgements, self._files)

    @property
    def root(self) -> Path:
        """The store's folder."""
        return self.layout.root

    @property
    def address(self) -> str:
        """How a command names the store: its folder, or its URL."""
        return str(self.root) if self._mirror is None else self._mirror.bucket.url

    def create_run(self, document: RunDocument, tasks: Iterable[PlannedTask], plan: Iterable[PlannedRollout]) -> None:
        """Put a run with its plan in place in one step: a crash before that leaves no run. Raises InputError where it exists."""
        run_id = check_run_id(document.run_id)
        target = self.layout.run(run_id)
        if self.holds(run_id):
            raise InputError(f"run {run_id} exists already in {self.address}; resume it or choose another id.")
        draft = self.layout.run(f".new-{run_id}.{socket.gethostname()}.{os.getpid()}")
        try:
            self._files.make_folder(self.layout.runs)
            self._sweep()
            shutil.rmtree(draft.folder, ignore_errors=True)
            self._files.make_folder(draft.journal)
            plans.write_plan(draft, run_id, tasks, plan, self._files)
            write_manifest(draft, RunManifest(), self._files)
            self._files.replace(draft.document, document.model_dump_json(indent=1).encode())
            self._set_aside(target.folder)
            self._files.rename(draft.folder, target.folder)
            self.made(run_id)
        except OSError as error:
            shutil.rmtree(draft.folder, ignore_errors=True)
            raise InputError(f"{target.folder}: the run could not be created: {error.strerror or error}.") from error

    def made(self, run_id: str) -> None:
        """Have a run that was put in place here uploaded, where the store is on a bucket."""
        if self._mirror is not None:
            self._mirror.note(run_id)

    def update_run(self, document: RunDocument) -> None:
        """Replace `run.json`, as a resume does that changes the selection or accepts a drift. Hold the writer meanwhile."""
        self._files.replace(self.layout.run(document.run_id).document, document.model_dump_json(indent=1).encode())

    def extend_plan(self, run_id: str, tasks: Iterable[PlannedTask], plan: Iterable[PlannedRollout]) -> None:
        """Append planned tasks and rollouts to a run, as a resume does whose repeats or selection grow."""
        plans.extend_plan(self.layout.run(run_id), run_id, tasks, plan, self._files)

    def holds(self, run_id: str) -> bool:
        """Whether there is a run of this full id."""
        if self._mirror is not None and run_id in self._mirror.runs():
            self._fetch(run_id, Depth.ALL)
        return self.layout.run(run_id).document.exists()

    def run_ids(self) -> list[str]:
        """The names of all runs."""
        here = self._ids_here()
        return here if self._mirror is None else sorted({*here, *self._mirror.runs()})

    def runs(self) -> list[RunDocument]:
        """All runs, newest first. One whose files are damaged is left out with a warning."""
        found = []
        if self._mirror is not None:
            self._mirror.fetch_all(self.run_ids(), Depth.HEAD)
        for run_id in self.run_ids():
            try:
                found.append(self.document(run_id))
            except InputError as error:
                log.warning("%s", error)
        return sorted(found, key=lambda document: (document.created_at, document.run_id), reverse=True)

    def document(self, run_id: str) -> RunDocument:
        """`run.json` of a run by its full id. Raises InputError where the run's files are damaged."""
        if self._mirror is None:
            require_intact(self.layout.run(run_id))
        self._fetch(run_id, Depth.HEAD)
        return read_document(self.layout.run(run_id))

    def fetch_rows(self, run_ids: Collection[str]) -> None:
        """Have here what the narrow views of some runs are of, where the store is on a bucket. Raises InputError where a run's
        files are damaged."""
        if self._mirror is not None:
            self._mirror.fetch_all(run_ids, Depth.ROWS)
            for run_id in run_ids:
                require_intact(self.layout.run(run_id))

    def reader(self, run_id: str) -> RunReader:
        """Read of a run, by its full id, what is here of it."""
        return RunReader(self.layout.run(run_id), run_id, self.artifacts)

    def resolve_run_id(self, name: str) -> str:
        """The run id meant by a full id, a unique beginning of one, or `latest`. Raises InputError with a proposal."""
        known = self.run_ids()
        if name in known:
            return name
        if name == "latest":
            if runs := self.runs():
                return runs[0].run_id
            raise InputError(f"there is no run in {self.address}.")
        matching = [run_id for run_id in known if run_id.startswith(name)] if name else []
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise InputError(
                f"run {name!r} is the beginning of {len(matching)} runs: {', '.join(sorted(matching)[:5])}."
            )
        raise InputError(f"no run {name!r} in {self.address}; {did_you_mean(name, known)}")

    def run(self, name: str) -> RunReader:
        """Read a run by its name, see `resolve_run_id`. Raises InputError where its files are damaged."""
        run_id = self.resolve_run_id(name)
        self._fetch(run_id, Depth.ALL)
        require_intact(self.layout.run(run_id))
        return self.reader(run_id)

    def writer(self, run_id: str) -> RunWriter:
        """The writer of a run, by its full id: `async with store.writer(run_id) as writer`. Raises RunLocked on entering where
        another process has it."""
        if run_id not in self.run_ids():
            raise InputError(f"no run {run_id!r} in {self.address}; {did_you_mean(run_id, self.run_ids())}")
        self._fetch(run_id, Depth.ALL)
        return RunWriter(self.layout.run(run_id), run_id, self.artifacts, self._files)

    def _fetch(self, run_id: str, depth: Depth) -> None:
        """Have what is newer in the bucket, where the store is on one."""
        if self._mirror is not None:
            self._mirror.fetch(run_id, depth)

    def _ids_here(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return [
                entry.name
                for entry in self.layout.runs.iterdir()
                if not entry.name.startswith(".") and (entry / "run.json").exists()
            ]
        return []

    def _set_aside(self, folder: Path) -> None:
        """A folder of that name without `run.json` is no run, and nothing is ever appended to what lies in it."""
        if folder.exists():
            kept = leftover(folder)
            log.warning("%s holds no run (it has no run.json) and was moved to %s", folder, kept)
            self._files.rename(folder, kept)

    def _sweep(self) -> None:
        """Remove drafts of processes that died while they created a run."""
        host = socket.gethostname()
        for draft in self.layout.runs.glob(".new-*"):
            owner, _, pid = draft.name.rpartition(".")
            if owner.endswith(f".{host}") and pid.isdigit() and not alive(int(pid)):
                shutil.rmtree(draft, ignore_errors=True)
