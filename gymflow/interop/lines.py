"""JSON Lines in and out."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from gymflow.datasets.jsonl import read_jsonl
from gymflow.errors import InputError
from gymflow.store.encoding import dumps


def rows_of(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where it stands (`file:line`), and the object of every line. InputError for a line that is none, and for an empty file."""
    empty = True
    for line in read_jsonl(file):
        empty = False
        if line.value is None:
            raise InputError(f"{file}:{line.number}: {line.fault}")
        yield f"{file}:{line.number}", line.value
    if empty:
        raise InputError(f"{file} is empty")


class Lines:
    """Files that are put in place when all of their lines are written. InputError where one exists already."""

    def __init__(self, *files: Path) -> None:
        for file in files:
            if file.exists():
                raise InputError(f"{file} exists already; name another --output")
        self.written: list[Path] = []
        self._files = files
        self._open: dict[Path, BinaryIO] = {}

    def write(self, file: Path, row: Any) -> None:
        """One line; a file comes into being with its first."""
        if file not in self._open:
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                self._open[file] = _draft(file).open("wb")
            except OSError as error:
                raise InputError(f"{file}: {error.strerror or error}") from error
        self._open[file].write(dumps(row)[0] + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in self._open.values():
            stream.close()
        for file in self._files:
            if file in self._open and kind is None:
                _draft(file).replace(file)
                self.written.append(file)
            elif file in self._open:
                with contextlib.suppress(OSError):
                    _draft(file).unlink()


def _draft(file: Path) -> Path:
    return file.with_name(f".{file.name}.draft")
