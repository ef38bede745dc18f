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
    """A generator's rows as plain JSON; its own exceptions are told with the row they came at."""
    entry = source.entry
    function = load_attribute(entry.package, source.name, entry.manifest_file, "datasets.generator")
    number = 0
    try:
        for number, row in enumerate(function(**source.spec.arguments), start=1):
            yield _generated_line(number, row)
    except Exception as error:
        raise InputError(
            f"{entry.manifest_file}: generator {source.name} failed after row {number}: {type(error).__name__}: {error}"
        ) from error


def _generated_line(number: int, row: Any) -> Line:
    if not isinstance(row, dict):
        return Line(number, None, f"a row must be a dict, not {type(row).__name__}")
    try:
        return Line(number, parse_object(_json(row)))
    except (TypeError, ValueError) as error:
        return Line(number, None, str(error))


def _json(row: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(row)
    except TypeError:
        return canonical_json(row)
