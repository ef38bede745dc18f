"""Bringing the folder of a run up to date with the bucket."""

import logging
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gymflow.store.files import Files
from gymflow.store.layout import RunLayout, leftover
from gymflow.store.manifest import read_manifest
from gymflow.store.remote import Depth
from gymflow.store.remote import record as records
from gymflow.store.remote.bucket import Bucket, Listed
from gymflow.store.remote.claim import LEASE
from gymflow.store.remote.record import Equal, Record, depth_of, file_of

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Objects that are fetched at once."""
_FETCHED = ".fetched"


class Fetch:
    """One run. `run` returns the record of what is equal then."""

    def __init__(self, bucket: Bucket, layout: RunLayout, files: Files) -> None:
        self._bucket, self._layout, self._files = bucket, layout, files
        self._run_id = layout.folder.name

    def changed(self, record: Record, there: dict[str, Listed], depth: Depth) -> bool:
        """Whether the bucket has something that the folder lacks, or lacks something that the folder has."""
        if record and there.keys() <= {LEASE}:
            return True
        keys = {key for key in there if key != LEASE and depth_of(key) <= depth}
        if any(self._is_wanted(key, record, there) for key in keys):
            return True
        return depth > Depth.HEAD and any(key not in there for key in record)

    def run(self, record: Record, there: dict[str, Listed], depth: Depth) -> Record | None:
        """None where the bucket changed meanwhile, and nothing that readers see was changed."""
        if there.keys() <= {LEASE}:
            self._set_aside("was removed from the bucket; what this machine had of it")
            return {}
        if self._unsent(record) and not self._adopt(record, there):
            self._set_aside("went on elsewhere without what was not uploaded from here, which")
            record = {}
        return self._download(record, there, depth)

    def _is_wanted(self, key: str, record: Record, there: dict[str, Listed]) -> bool:
        if key in record and record[key].etag == there[key].etag:
            return not (self._layout.folder / file_of(key)).exists() and not self._is_retired(key)
        return True

    def _is_retired(self, key: str) -> bool:
        return self._layout.manifest.exists() and bool(records.retired([file_of(key)], read_manifest(self._layout)))

    def _unsent(self, record: Record) -> bool:
        """Whether the folder has something of the run that the bucket never had."""
        return any(not name.startswith(records.APART) for name in records.unsent(self._layout, record))

    def _adopt(self, record: Record, there: dict[str, Listed]) -> bool:
        """Whether the bucket differs only by what this machine sent without living to record it; it is recorded then."""
        for key in [key for key in record if key not in there]:
            if not self._is_retired(key):
                return False
            del record[key]
        for key, listed in there.items():
            if key.startswith((LEASE, *records.APART)) or (key in record and record[key].etag == listed.etag):
                continue
            path = self._layout.folder / file_of(key)
            if not path.exists():
                if self._is_retired(key):
                    continue
                return False
            copy = _copy(path)
            etag = self._bucket.download(f"runs/{self._run_id}/{key}", copy)
            start = records.offset_of(key) if "@" in key else 0
            with copy.open("rb") as sent, path.open("rb") as own:
                own.seek(start)
                while block := sent.read(1 << 20):
                    if own.read(len(block)) != block:
                        return False
            copy.unlink()
            if "@" in key:
                record[key] = Equal(str(etag), listed.bytes, 0)
            elif listed.bytes == path.stat().st_size:
                record[key] = Equal(str(etag), listed.bytes, path.stat().st_mtime_ns)
            else:
                return False
        return True

    def _set_aside(self, why: str) -> None:
        kept = leftover(self._layout.folder)
        self._layout.folder.rename(kept)
        log.warning("run %s %s is kept in %s", self._run_id, why, kept)

    def _download(self, record: Record, there: dict[str, Listed], depth: Depth) -> Record | None:
        keys = {key for key in there if key != LEASE and depth_of(key) <= depth}
        wanted = {key for key in keys if self._is_wanted(key, record, there)}
        names = {file_of(key) for key in wanted}
        # A piece is what it is only behind those before it: from the first that is wanted on, all are.
        for name in filter(records.is_segment, names):
            pieces = records.pieces_of(keys, name)
            wanted.update(pieces[min(pieces.index(key) for key in pieces if key in wanted) :])
        if not self._get(wanted, there):
            return None
        fresh = {key: one for key, one in record.items() if key not in wanted and (key in there or depth is Depth.HEAD)}
        for name in sorted(names, key=_order):
            path = self._layout.folder / name
            if records.is_segment(name):
                self._join(path, records.pieces_of(wanted, name))
            else:
                self._files.rename(_copy(path), path)
                status = path.stat()
                fresh[name] = Equal(there[name].etag, status.st_size, status.st_mtime_ns)
        for piece in wanted:
            if "@" in piece:
                fresh[piece] = Equal(there[piece].etag, there[piece].bytes, 0)
        if depth > Depth.HEAD:
            for name in {file_of(key) for key in record if key not in there}:
                (self._layout.folder / name).unlink(missing_ok=True)
        return fresh

    def _get(self, keys: Iterable[str], there: dict[str, Listed]) -> bool:
        """Have copies beside where the files go; False where the bucket changed meanwhile."""

        def get(key: str) -> bool:
            path = _copy(self._layout.folder / key)
            path.parent.mkdir(parents=True, exist_ok=True)
            etag = self._bucket.download(f"runs/{self._run_id}/{key}", path)
            if etag != there[key].etag:
                path.unlink(missing_ok=True)
                return False
            self._files.sync_file(path)
            return True

        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gymflow-fetch") as pool:
            return all(list(pool.map(get, sorted(keys))))

    def _join(self, path: Path, pieces: list[str]) -> None:
        whole = _copy(path)
        with whole.open("wb") as target:
            if start := records.offset_of(pieces[0]):
                with path.open("rb") as kept:
                    target.write(kept.read(start))
            for piece in pieces:
                copy = _copy(self._layout.folder / piece)
                with copy.open("rb") as source:
                    shutil.copyfileobj(source, target)
                copy.unlink()
        self._files.sync_file(whole)
        self._files.rename(whole, path)


def _copy(path: Path) -> Path:
    return path.with_name(f".{path.name}{_FETCHED}")


def _order(name: str) -> tuple[int, str]:
    """Bodies before what names them; the document, which makes a folder a run, last."""
    return ({"manifest.json": 1, "run.json": 2}.get(name, 0), name)
