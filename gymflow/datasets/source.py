"""Where a split's rows come from: a file in the environment's folder, or a generator in its code."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from gymflow import keys
from gymflow.canonical import canonical_json
from gymflow.contracts.environment import DatasetSpec
from gymflow.datasets.jsonl import Line, parse_object, read_jsonl
from gymflow.datasets.table import read_csv
from gymflow.errors import InputError
from gymflow.registry import EnvironmentEntry, load_attribute
from gymflow.suggest import did_you_mean

READERS: dict[str, Callable[[Path], Iterator[Line]]] = {".jsonl": read_jsonl, ".csv": read_csv}

KEPT_BYTES = 8 * 1024 * 1024
"""Largest output of a generator that is kept in memory."""

_made: dict[str, list[bytes | str]] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """The source of one split. `name` is what faults call it; `file` is None for a generator."""

    name: str
    entry: EnvironmentEntry
    spec: DatasetSpec
    file: Path | None

    def lines(self) -> Iterator[Line]:
        """The rows as they come."""
        return READERS[self.file.suffix](self.file) if self.file is not None else _generated(self)


def source_of(entry: EnvironmentEntry, split: str) -> Source:
    """The split's source. InputError when there is no such split or file."""
    datasets = entry.manifest.datasets
    if split not in datasets:
        raise InputError(f"{entry.name} has no split {split!r}; {did_you_mean(split, datasets)}")
    spec = datasets[split]
    if spec.file is None:
        return Source(str(spec.generator), entry, spec, None)
    file = entry.folder / spec.file
    where = f"{entry.document.where(('datasets', split, 'file'))}: datasets.{split}.file"
    if not file.is_file():
        raise InputError(f"{where}: there is no file {file}")
    if file.suffix not in READERS:
        raise InputError(f"{where}: {file.name} is neither {' nor '.join(READERS)}")
    return Source(str(file), entry, spec, file)


def dataset_digest(entry: EnvironmentEntry, split: str) -> str:
    """What identifies a split's content: a file's bytes, a generator's rows."""
    source = source_of(entry, split)
    if source.file is None:
        return keys.digest([keys.digest(line.value) for line in source.lines()])
    try:
        return keys.files_digest([(source.file.suffix, source.file.read_bytes())])
    except OSError as error:
        raise InputError(f"{source.file}: {error.strerror or error}") from error


def _generated(source: Source) -> Iterator[Line]:
    """A generator's rows as plain JSON, made once a process as long as they are few: a run reads them several times."""
    key = keys.digest([source.entry.package, source.name, source.spec.arguments])
    if key in _made:
        yield from (_generated_line(number, raw) for number, raw in enumerate(_made[key], start=1))
        return
    kept: list[bytes | str] = []
    size = 0
    for number, raw in enumerate(generate(source), start=1):
        size += len(raw)
        if size <= KEPT_BYTES:
            kept.append(raw)
        yield _generated_line(number, raw)
    if size <= KEPT_BYTES:
        _made[key] = kept


def generate(source: Source) -> Iterator[bytes | str]:
    """Call the generator: each row as JSON, or as text why it is none. Its own exceptions are told with the row they came at."""
    entry = source.entry
    function = load_attribute(entry.package, source.name, entry.manifest_file, "datasets.generator")
    made = 0
    try:
        for row in function(**source.spec.arguments):
            made += 1
            yield _json(row)
    except Exception as error:
        raise InputError(
            f"{entry.manifest_file}: generator {source.name} failed after row {made}: {type(error).__name__}: {error}"
        ) from error


def _generated_line(number: int, raw: bytes | str) -> Line:
    if isinstance(raw, str):
        return Line(number, None, raw)
    try:
        return Line(number, parse_object(raw))
    except ValueError as error:
        return Line(number, None, str(error))


def _json(row: Any) -> bytes | str:
    if not isinstance(row, dict):
        return f"a row must be a dict, not {type(row).__name__}"
    try:
        return orjson.dumps(row)
    except TypeError:
        pass
    try:
        return canonical_json(row)
    except ValueError as error:
        return str(error)
