"""The rows of a split as tasks with ids.

A row's id is its `task_id`, else its `id`; a row without one gets the first 16 hex digits of its content's digest, with `-2`, `-3`,
… for equal rows. It depends on the row alone, so no order, seed or limit changes it. Ids are text: `1` and `"1"` are the same.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gymflow import keys
from gymflow.contracts.environment import Manifest
from gymflow.contracts.task import Task
from gymflow.datasets.prompt import rendered
from gymflow.datasets.source import Source, source_of
from gymflow.documents import fault_message
from gymflow.errors import InputError
from gymflow.registry import EnvironmentEntry

SHOWN_FAULTS = 5
M = TypeVar("M", bound=BaseModel)


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
    """One good row: where it stands, what it holds, and the task it is, with its id. `items` is the rendered input, where the
    manifest was given."""

    line: int
    fields: dict[str, Any]
    task: Task
    items: list[dict[str, Any]]


def load_rows(
    entry: EnvironmentEntry,
    split: str,
    *,
    manifest: Manifest | None = None,
    task_fields: type[BaseModel] | None = None,
    skip_bad: bool = False,
    skipped: list[RowFault] | None = None,
) -> Iterator[Task]:
    """The tasks of a split in order, each with its `task_id` as text.

    With `manifest` (as merged for a run) and `task_fields` (the verifier's model), a row whose prompt cannot be rendered or that
    does not fit the verifier is bad too. InputError at the first bad rows; with `skip_bad` they are left out and listed in `skipped`.
    """
    for row in read_rows(source_of(entry, split), manifest, task_fields):
        if isinstance(row, Row):
            yield row.task
        elif not skip_bad:
            shown = "\n".join(map(str, row[:SHOWN_FAULTS]))
            raise InputError(f"{shown}\n`gym env validate {entry.name}` shows all; `skip_bad_rows` leaves them out")
        elif skipped is not None:
            skipped += row


def read_rows(
    source: Source, manifest: Manifest | None = None, task_fields: type[BaseModel] | None = None
) -> Iterator[Row | list[RowFault]]:
    """Every row of a source, in order: a task, or what is wrong with it."""
    taken: dict[str, int] = {}
    equal_rows: Counter[str] = Counter()
    for line in source.lines():
        if line.value is None:
            yield [RowFault(source.name, line.number, None, line.fault or "")]
            continue
        faults: list[RowFault] = []
        task_id, field = _id(line.value, equal_rows)
        if task_id in taken:
            message = f"the id {task_id!r} is taken by line {taken[task_id]}; ids are compared as text"
            faults.append(RowFault(source.name, line.number, field, message))
        taken.setdefault(task_id, line.number)
        task = _checked({**line.value, "task_id": task_id}, Task, source, line.number, faults)
        if task is not None and task_fields is not None:
            _checked(task.verifier_fields, task_fields, source, line.number, faults)
        items: list[dict[str, Any]] = []
        if task is not None and manifest is not None:
            try:
                items = rendered(task, manifest)
            except ValueError as error:
                faults.append(RowFault(source.name, line.number, "input", str(error)))
        yield faults if faults or task is None else Row(line.number, line.value, task, items)


def _id(row: dict[str, Any], equal_rows: Counter[str]) -> tuple[str, str | None]:
    """The row's id, and the field that gave it."""
    for name in ("task_id", "id"):
        value = row.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value), name
    content = keys.digest(row)[:16]
    equal_rows[content] += 1
    return (content if equal_rows[content] == 1 else f"{content}-{equal_rows[content]}"), None


def _checked(row: dict[str, Any], model: type[M], source: Source, line: int, faults: list[RowFault]) -> M | None:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        faults += [
            RowFault(source.name, line, ".".join(map(str, fault["loc"])) or None, fault_message(fault, model))
            for fault in error.errors(include_url=False)
        ]
    return None
