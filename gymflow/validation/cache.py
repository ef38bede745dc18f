"""Remembers which files were found good, so that an unchanged one is not read again before every run."""

import os
import time
from dataclasses import asdict
from pathlib import Path

import orjson

from gymflow import __version__, keys
from gymflow.validation.report import Fault, SplitReport

SETTLED_NS = 2_000_000_000
"""A file changed less than this ago may change again within one tick of its time stamp, so it is not remembered."""


class SplitCache:
    """Reports by file and by `schema`, a digest of everything besides the file that the report depends on."""

    def __init__(self, folder: Path | None = None) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.folder = folder or Path(home) / "gymflow" / "validated"

    def get(self, file: Path, schema: str) -> SplitReport | None:
        """The report, if the file has the size and time of change that it had then."""
        try:
            entry = orjson.loads(self._path(file, schema).read_bytes())
            if entry["stat"] != _stat(file):
                return None
            report = entry["report"]
            report["faults"] = [Fault(**fault) for fault in report["faults"]]
            return SplitReport(**report | {"cached": True})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, file: Path, schema: str, stat: list[int], report: SplitReport) -> None:
        """Remember a report of the file as it was at `stat`, taken before it was read. A cache that cannot be written is no
        fault."""
        if time.time_ns() - stat[1] < SETTLED_NS:
            return
        path = self._path(file, schema)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(orjson.dumps({"stat": stat, "report": asdict(report)}))
            temporary.replace(path)
        except OSError:
            return

    def stat(self, file: Path) -> list[int]:
        """What must be equal for the file to count as unchanged."""
        return _stat(file)

    def _path(self, file: Path, schema: str) -> Path:
        return self.folder / f"{keys.digest([__version__, str(file.resolve()), schema])[:32]}.json"


def _stat(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]
