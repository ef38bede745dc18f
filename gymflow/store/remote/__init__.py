"""Stores on object storage: `s3://bucket/prefix`.

Each has a *working folder* under the user's cache folder, which is an ordinary store. Opening a run fetches what the bucket has
newer; what is written is uploaded by a thread while the run goes on, and `settle` waits for the rest at the end of a command.
"""

import hashlib
import os
import re
import threading
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from gymflow.errors import InputError

if TYPE_CHECKING:
    from gymflow.store.remote.mirror import Mirror


class Depth(IntEnum):
    """How much of a run is fetched: what lists it, what its score is counted from, or all of it."""

    HEAD = 0
    ROWS = 1
    ALL = 2


_open: "dict[Path, Mirror]" = {}
_opening = threading.Lock()


def working_folders() -> Path:
    """Where the working folders lie."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home.absolute() / "gymflow" / "stores"


def working_folder(url: str) -> Path:
    """The working folder of a URL, opened: raises InputError where the bucket cannot be read."""
    if not re.match(r"s3://[^/]", url):
        raise InputError(f"store {url!r} names no bucket; write s3://bucket/prefix")
    url = url.rstrip("/")
    folder = working_folders() / hashlib.sha256(url.encode()).hexdigest()[:16]
    with _opening:
        if folder not in _open:
            from gymflow.store.remote.mirror import Mirror

            _open[folder] = Mirror(url, folder)
    return folder


def mirror_of(path: Path) -> "Mirror | None":
    """The bucket behind a path; None for a path in no working folder."""
    base = working_folders()
    if base not in path.parents:
        return None
    folder = base / path.relative_to(base).parts[0]
    if folder not in _open:
        address = folder / ".remote" / "url"
        if not address.is_file():
            return None
        working_folder(address.read_text())
    return _open[folder]


def away(paths: Iterable[Path]) -> set[Path]:
    """Those of the paths that are in a bucket and not in its working folder (yet)."""
    if not _open:
        return set()
    return {path for path in paths if not path.exists() and mirror_of(path) is not None}


def fetch(parts: Iterable[Path]) -> None:
    """Have here all of the runs that the parts are of."""
    for run in {part.parents[2] for part in parts}:
        if (mirror := mirror_of(run)) is not None:
            mirror.fetch(run.name, Depth.ALL)


def settle() -> list[str]:
    """Upload what is not in the buckets yet; returns a line about each bucket to which this process has sent something. Raises
    RunIncomplete, saying what is not there, where it fails."""
    told = []
    for mirror in _open.values():
        mirror.settle()
        if mirror.bucket.sent:
            told.append(f"{mirror.bucket.url} has everything ({mirror.bucket.requests} requests)")
    return told
