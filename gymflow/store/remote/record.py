"""What of a run is equal in its folder and in the bucket.

A file is an object of the same name, but for a journal segment, which is uploaded in pieces of whole lines,
`journal/000000.jsonl@<offset>`. Of these only the last one ever grows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from gymflow.store.files import Files
from gymflow.store.layout import RunLayout
from gymflow.store.manifest import RunManifest, read_manifest
from gymflow.store.remote import Depth

APART = ("reports/", "decisions/")
"""What commands write that do not hold the run's lease."""
_LOCAL_LEASE = RunLayout(Path()).lease.name
_BODIES = ("parts/evidence/", "parts/model_calls/", "parts/tokens/")


@dataclass(frozen=True, slots=True)
class Equal:
    """An object's ETag, and size and time of the file that it is equal to. Of a journal piece its own size, and 0."""

    etag: str
    bytes: int
    mtime_ns: int


Record = dict[str, Equal]
"""By key within the run."""
Stat = tuple[int, int]
"""Size and time of a file."""


def depth_of(key: str) -> Depth:
    """From which depth on an object is fetched."""
    if key == "run.json" or key.startswith("decisions/"):
        return Depth.HEAD
    return Depth.ALL if key.startswith(_BODIES) else Depth.ROWS


def read_record(path: Path, folder: Path) -> Record:
    """Nothing is equal where the run's folder is gone."""
    if not folder.is_dir() or not path.is_file():
        return {}
    return {key: Equal(*value) for key, value in orjson.loads(path.read_bytes()).items()}


def write_record(path: Path, record: Record, files: Files) -> None:
    """Put a record in place."""
    files.replace(path, orjson.dumps({key: (one.etag, one.bytes, one.mtime_ns) for key, one in record.items()}))


def here(folder: Path) -> dict[str, Stat]:
    """The files of a run by their name in it; what is in the making and the lease are none."""
    found = {}
    for path in folder.rglob("*"):
        if path.name.startswith(".") or path.name == _LOCAL_LEASE:
            continue
        try:
            if path.is_file():
                status = path.stat()
                found[path.relative_to(folder).as_posix()] = (status.st_size, status.st_mtime_ns)
        except FileNotFoundError:  # replaced or removed by the run's writer
            continue
    return found


def is_segment(name: str) -> bool:
    """Whether a file is uploaded in pieces."""
    return name.startswith("journal/") and name.endswith(".jsonl")


def file_of(key: str) -> str:
    """The file that an object is of."""
    return key.partition("@")[0]


def offset_of(piece: str) -> int:
    """Where in its segment a piece begins."""
    return int(piece.rpartition("@")[2])


def pieces_of(keys: Iterable[str], segment: str) -> list[str]:
    """The pieces of a segment, in order."""
    return sorted(key for key in keys if key.startswith(f"{segment}@"))


def is_sent(name: str, now: Stat, record: Record) -> bool:
    """Whether the bucket has a file as it is."""
    if is_segment(name):
        return sum(record[key].bytes for key in pieces_of(record, name)) >= now[0]
    return name in record and (record[name].bytes, record[name].mtime_ns) == now


def retired(names: Iterable[str], manifest: RunManifest) -> set[str]:
    """Files that are no more of the run, their rows being in other parts, or not yet, being in the making."""
    named = {f"parts/{table}/{part.file}" for table, parts in manifest.parts.items() for part in parts}
    return {
        name
        for name in names
        if (name.startswith("parts/") and name not in named)
        or (is_segment(name) and int(Path(name).stem) < manifest.journal_from)
    }


def unsent(layout: RunLayout, record: Record) -> dict[str, Stat]:
    """The files of a run that the bucket does not have as they are."""
    found = {name: now for name, now in here(layout.folder).items() if not is_sent(name, now, record)}
    if found and layout.manifest.exists():
        for name in retired(found, read_manifest(layout)):
            del found[name]
    return found
