"""Uploading what is new in the folder of a run: what an object refers to goes before it."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from gymflow.errors import RunLocked
from gymflow.store.layout import RunLayout
from gymflow.store.manifest import RunManifest
from gymflow.store.remote import record as records
from gymflow.store.remote.bucket import Bucket
from gymflow.store.remote.claim import Claim
from gymflow.store.remote.record import Equal, Record, Stat

PIECE_BYTES = 1 << 20
"""A journal piece of this size is left alone; a smaller one is replaced when there is more."""
_TRIES = 5
_MANIFEST = "manifest.json"


class Send:
    """One run. `keep` is told the record whenever an object was sent."""

    def __init__(self, bucket: Bucket, layout: RunLayout, record: Record, keep: Callable[[Record], None]) -> None:
        self._bucket, self._layout, self._record, self._keep = bucket, layout, record, keep
        self._prefix = f"runs/{layout.folder.name}/"

    def apart(self) -> None:
        """Reports and decisions, which nobody needs the lease for."""
        for name, now in records.here(self._layout.folder).items():
            if name.startswith(records.APART):
                self._file(name, now, self._bucket.upload)

    def whole(self, claim: Claim, send_shared: Callable[[], None]) -> None:
        """Everything: artifacts and judgements by `send_shared`, journal, parts and plan, `run.json`, and then the manifest; what
        it no longer names is removed last. Every object is put on the condition that it is as this machine left it: raises RunLocked
        where another one has taken the run over, and changes nothing of it then."""
        for _ in range(_TRIES):
            data = self._layout.manifest.read_bytes()
            manifest = RunManifest.model_validate_json(data)
            found = records.here(self._layout.folder)
            for name in records.retired(found, manifest):
                del found[name]
            send_shared()
            claim.require()
            for name in sorted(found, key=lambda name: (name == "run.json", name)):
                if records.is_segment(name):
                    self._segment(name, found[name])
                elif name != _MANIFEST:
                    self._file(name, found[name], self._ours)
            if data == self._layout.manifest.read_bytes():
                break
        else:
            return  # the run changes too fast to be caught: the next round does it
        if not records.is_sent(_MANIFEST, found[_MANIFEST], self._record):
            self._sent(_MANIFEST, Equal(self._ours(self._prefix + _MANIFEST, io.BytesIO(data)), *found[_MANIFEST]))
        self._remove_retired(found, manifest)

    def _ours(self, key: str, file: BinaryIO) -> str:
        """Put an object in place of the one that this machine put there."""
        before = self._record.get(key.removeprefix(self._prefix))
        etag = self._bucket.upload_if(key, file, before.etag if before else None)
        if etag is None:
            raise RunLocked(f"run {self._layout.folder.name} went on on another machine; resume it there")
        return etag

    def _file(self, name: str, now: Stat, put: Callable[[str, BinaryIO], str]) -> None:
        if records.is_sent(name, now, self._record):
            return
        try:
            with (self._layout.folder / name).open("rb") as file:
                self._sent(name, Equal(put(self._prefix + name, file), *now))
        except FileNotFoundError:
            pass  # replaced while we looked; the manifest that says so is next

    def _segment(self, name: str, now: Stat) -> None:
        pieces = records.pieces_of(self._record, name)
        sent, size = sum(self._record[key].bytes for key in pieces), now[0]
        if sent > size:  # lines that nobody was told of were taken back
            self._forget(pieces)
            pieces, sent = [], 0
        if pieces and sent == size:
            return
        start = sent
        if pieces and self._record[pieces[-1]].bytes < PIECE_BYTES:
            start = records.offset_of(pieces[-1])
        data = _lines(self._layout.folder / name, start, size)
        if data is not None and (start + len(data) > sent or not pieces):
            key = f"{name}@{start:012d}"
            self._sent(key, Equal(self._ours(self._prefix + key, io.BytesIO(data)), len(data), 0))

    def _remove_retired(self, found: dict[str, Stat], manifest: RunManifest) -> None:
        names = {records.file_of(key) for key in self._record} - found.keys()
        if gone := records.retired(names, manifest):
            self._forget([key for key in self._record if records.file_of(key) in gone])

    def _forget(self, keys: list[str]) -> None:
        self._bucket.delete([self._prefix + key for key in keys])
        for key in keys:
            del self._record[key]
        self._keep(self._record)

    def _sent(self, key: str, equal: Equal) -> None:
        self._record[key] = equal
        self._keep(self._record)


def _lines(segment: Path, start: int, end: int) -> bytes | None:
    """The whole lines in a stretch of a segment; None where the segment is gone, its rows being in parts."""
    try:
        with segment.open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
    except FileNotFoundError:
        return None
    return data[: data.rfind(b"\n") + 1]
