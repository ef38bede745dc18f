"""What all runs of a store share, artifacts and judgements: files that never change, by the digest of what they answer to."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from gymflow.store.files import Files
from gymflow.store.layout import StoreLayout
from gymflow.store.remote.bucket import Bucket

AT_ONCE = 8
"""Files that are uploaded at once: there may be one for every rollout."""
_JUDGEMENTS = "judgements/"
_TICK_NS = 1_000_000_000
"""Time of a folder's last change after which a further one is sure to have another."""


class Shared:
    """Kept in the working folder where they were made or asked for."""

    def __init__(self, bucket: Bucket, layout: StoreLayout, known: Path, files: Files) -> None:
        self._bucket, self._layout, self._known_file, self._files = bucket, layout, known, files
        self._times: dict[Path, int] = {}
        self._alone = threading.Lock()

    def fetch(self, path: Path) -> bool:
        """Have a file here; False where the bucket has none."""
        key = self._key(path)
        if key.startswith(_JUDGEMENTS) and key not in self._judgements:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = path.with_name(f".{path.name}.{threading.get_ident()}.fetched")
        if self._bucket.download(key, copy) is None:
            return False
        self._files.sync_file(copy)
        self._files.rename(copy, path)
        self._note([key])
        return True

    def send(self) -> None:
        """Upload the files that are new here."""
        with self._alone:
            times, new = dict(self._times), []
            for folder, time_ns in self._folders():
                if times.get(folder) != time_ns:
                    new += [path for path in folder.iterdir() if self._is_new(path)]
                    if time.time_ns() - time_ns > _TICK_NS:
                        times[folder] = time_ns
            if new:
                with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gymflow-upload") as pool:
                    self._note(pool.map(self._send, new))
            self._times = times

    def _folders(self) -> Iterator[tuple[Path, int]]:
        """Those that hold files, and when one was last added."""
        for place in (self._layout.artifacts, self._layout.judgements):
            for folder in place.glob("??"):
                yield folder, folder.stat().st_mtime_ns

    def _is_new(self, path: Path) -> bool:
        return not path.name.startswith(".") and self._key(path) not in self._known

    def _send(self, path: Path) -> str:
        with path.open("rb") as file:
            self._bucket.upload(self._key(path), file)
        return self._key(path)

    def _key(self, path: Path) -> str:
        return path.relative_to(self._layout.root).as_posix()

    def _note(self, keys: "Iterator[str] | list[str]") -> None:
        with self._known_file.open("a") as file:
            for key in keys:
                self._known.add(key)
                file.write(f"{key}\n")

    @cached_property
    def _known(self) -> set[str]:
        """Keys that are in the bucket for certain; another machine's are uploaded again, which changes nothing."""
        with suppress(FileNotFoundError):
            return set(self._known_file.read_text().split())
        return set()

    @cached_property
    def _judgements(self) -> set[str]:
        """Listed once: nearly every question is asked of a judge for the first time."""
        return set(self._bucket.list(_JUDGEMENTS))
