"""The rows of a split: from a file or generator to tasks with ids, rendered input and their place in the source.

A row's id is its `task_id`, else its `id`; a row without one gets the first 16 hex digits of its content's digest, with `-2`, `-3`, … for
equal rows. It depends on the row alone, so no order, seed or limit changes it. Ids are text: `1` and `"1"` are the same.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from gymflow import keys
from gymflow.canonical import canonical_json
from gymflow.contracts.environment import DatasetSpec, Manifest
from gymflow.contracts.task import Task
from gymflow.datasets.jsonl import Line, parse_object, read_jsonl
from gymflow.datasets.prompt import Prompt
from gymflow.datasets.table import read_csv
from gymflow.documents import fault_message
from gymflow.errors import InputError
from gymflow.registry import EnvironmentEntry, load_attribute
from gymflow.suggest import did_you_mean

M = TypeVar("M", bound=BaseModel)
READERS = {".jsonl": read_jsonl, ".csv": read_csv}
SHOWN_FAULTS = 5


@dataclass(frozen=True, slots=True)
class RowFault:
    """What is wrong with one row: the file (or generator) and line, and the field where it is one field's fault."""

    source: str
    line: int
    field: str | None
    message: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {f'{self.field}: ' if self.field else ''}{self.message}"


@dataclass(frozen=True, slots=True)
class Row:
    """One task of a split. `fields` is the row with its rendered `input`, `task` the same as a contract."""

    index: int
    line: int
    task_id: str
    fields: dict[str, Any]
    task: Task


@dataclass(slots=True)
class Selected:
    """The tasks of a split that a run uses, in order, and the rows that had to be left out."""

    rows: list[Row] = field(default_factory=list)
    skipped: list[RowFault] = field(default_factory=list)


def read_split(
    entry: EnvironmentEntry, manifest: Manifest, split: str, task_fields: type[BaseModel] | None = None
) -> Iterator[Row | list[RowFault]]:
    """Every row of a split, in order, or what is wrong with it. `manifest` is the one merged for the run; `task_fields` is the
    verifier's model of a row.

    InputError when the split does not exist or its source cannot be read at all.
    """
    source = _source(entry, manifest, split)
    prompt = prompt_of(manifest, entry)
    first_lines: dict[str, int] = {}
    equal_rows: Counter[str] = Counter()
    for index, line in enumerate(source.lines()):
        if line.value is None:
            yield [RowFault(source.name, line.number, None, line.fault or "")]
            continue
        row = line.value
        faults: list[RowFault] = []
        task_id = _id(row)
        if task_id is None:
            task_id = _content_id(row, equal_rows)
        elif task_id in first_lines:
            known = first_lines[task_id]
            message = f"the id {task_id!r} is taken by line {known}; ids are compared as text"
            faults.append(RowFault(source.name, line.number, "task_id" if "task_id" in row else "id", message))
        first_lines.setdefault(task_id, line.number)
        try:
            row = _with_input(row, prompt, starts_empty=manifest.session is not None)
        except ValueError as error:
            faults.append(RowFault(source.name, line.number, "responses_create_params.input", str(error)))
        task = _checked(row, Task, source.name, line.number, faults)
        if task_fields is not None:
            _checked(row, task_fields, source.name, line.number, faults)
        yield faults if faults or task is None else Row(index, line.number, task_id, row, task)


def load_split(
    entry: EnvironmentEntry,
    manifest: Manifest,
    split: str,
    *,
    task_fields: type[BaseModel] | None = None,
    limit: int | None = None,
    tasks: list[str] | None = None,
    skip_bad_rows: bool = False,
) -> Selected:
    """The selected tasks: only those of `tasks` where given, of these the first `limit` (0 is none). InputError for the first bad rows unless
    they are to be skipped, and for an id that no row has."""
    selected = Selected()
    wanted = None if tasks is None else dict.fromkeys(str(task) for task in tasks)
    seen: list[str] = []
    if limit == 0:
        _source(entry, manifest, split)
        return selected
    bad: list[RowFault] = []
    for row in read_split(entry, manifest, split, task_fields):
        if isinstance(row, list):
            bad += row
            if not skip_bad_rows and len(bad) >= SHOWN_FAULTS:
                break
            continue
        seen.append(row.task_id)
        if wanted is None or row.task_id in wanted:
            selected.rows.append(row)
            if len(selected.rows) == limit or (wanted is not None and len(selected.rows) == len(wanted)):
                break
    if bad and not skip_bad_rows:
        shown = "\n".join(map(str, bad[:SHOWN_FAULTS]))
        raise InputError(f"{shown}\n`gym env validate {entry.name}` counts all; `skip_bad_rows` leaves them out")
    found = {row.task_id for row in selected.rows}
    if wanted is not None and limit is None and (missing := [task for task in wanted if task not in found]):
        raise InputError(f"{entry.name}: split {split!r} has no task {missing[0]!r}; {did_you_mean(missing[0], seen)}")
    selected.skipped = bad
    return selected


def split_digest(entry: EnvironmentEntry, manifest: Manifest, split: str) -> str:
    """What a split's content is identified by: a file's bytes, a generator's rows."""
    source = _source(entry, manifest, split)
    if source.file is not None:
        try:
            return keys.files_digest([(source.file.suffix, source.file.read_bytes())])
        except OSError as error:
            raise InputError(f"{source.file}: {error.strerror or error}") from error
    return keys.digest([keys.digest(line.value if line.fault is None else line.fault) for line in source.lines()])


def split_file(entry: EnvironmentEntry, manifest: Manifest, split: str) -> Path | None:
    """The file that a split is read from; None for a generator."""
    return _source(entry, manifest, split).file


def prompt_of(manifest: Manifest, entry: EnvironmentEntry) -> Prompt | None:
    """The prompt template of a merged manifest, checked."""
    try:
        return Prompt(manifest.prompt) if manifest.prompt else None
    except ValueError as error:
        raise InputError(f"{entry.document.where(('prompt',))}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Source:
    name: str
    spec: DatasetSpec
    entry: EnvironmentEntry
    file: Path | None

    def lines(self) -> Iterator[Line]:
        if self.file is not None:
            return READERS[self.file.suffix](self.file)
        return _generated(self)


def _source(entry: EnvironmentEntry, manifest: Manifest, split: str) -> _Source:
    if split not in manifest.datasets:
        raise InputError(f"{entry.name} has no split {split!r}; {did_you_mean(split, manifest.datasets)}")
    spec = manifest.datasets[split]
    where = entry.document.where(("datasets", split))
    if spec.file is None:
        return _Source(f"{spec.generator}", spec, entry, None)
    file = entry.folder / spec.file
    if not file.is_file():
        raise InputError(f"{where}: datasets.{split}.file: there is no file {file}")
    if file.suffix not in READERS:
        raise InputError(f"{where}: datasets.{split}.file: {file.name} is neither {' nor '.join(READERS)}")
    return _Source(str(file), spec, entry, file)


def _generated(source: _Source) -> Iterator[Line]:
    """A generator's rows as plain JSON; its own exceptions are the environment's bug, told with the row they came at."""
    entry, reference = source.entry, str(source.spec.generator)
    function = load_attribute(entry.package, reference, entry.manifest_file, "datasets.generator")
    number = 0
    try:
        for number, row in enumerate(function(**source.spec.arguments), start=1):
            if not isinstance(row, dict):
                yield Line(number, None, f"a row must be a dict, not {type(row).__name__}")
                continue
            try:
                yield Line(number, parse_object(_json(row)))
            except (TypeError, ValueError) as error:
                yield Line(number, None, str(error))
    except Exception as error:
        raise InputError(
            f"{entry.manifest_file}: generator {reference} failed after row {number}: {type(error).__name__}: {error}"
        ) from error


def _json(row: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(row)
    except TypeError:
        return canonical_json(row)


def _id(row: dict[str, Any]) -> str | None:
    for name in ("task_id", "id"):
        value = row.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _content_id(row: dict[str, Any], equal_rows: Counter[str]) -> str:
    identity = keys.digest(row)[:16]
    equal_rows[identity] += 1
    return identity if equal_rows[identity] == 1 else f"{identity}-{equal_rows[identity]}"


def _with_input(row: dict[str, Any], prompt: Prompt | None, *, starts_empty: bool) -> dict[str, Any]:
    create = row.get("responses_create_params")
    if create is not None and not isinstance(create, dict):
        return row  # the contract says what is wrong
    own = (create or {}).get("input")
    if own is None and prompt is None:
        if not starts_empty:
            raise ValueError("the row has no input, and the environment no prompt that makes one")
        messages: Any = []
    elif own is None and prompt is not None:
        messages = prompt.render(row)
    elif prompt is not None and prompt.placeholders and prompt.fills(row):
        raise ValueError("the row has its own input and also fills the environment's prompt; keep one of them")
    elif isinstance(own, str):
        messages = [{"role": "user", "content": own}]
    else:
        return row
    return {**row, "responses_create_params": {**(create or {}), "input": messages}}


def _checked(row: dict[str, Any], model: type[M], source: str, line: int, faults: list[RowFault]) -> M | None:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        faults += [
            RowFault(source, line, ".".join(map(str, fault["loc"])) or None, fault_message(fault, model))
            for fault in error.errors(include_url=False)
        ]
    return None
