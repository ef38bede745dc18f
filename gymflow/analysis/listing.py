"""Reports of a run that end in a long list: the head is one line, so that it can be read without the list."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from gymflow.contracts.base import Contract
from gymflow.errors import InputError
from gymflow.store import RunReader
from gymflow.store.files import Files, disk_error

Head = TypeVar("Head", bound=Contract)
Item = TypeVar("Item")
_BATCH = 1000
"""Items that are written at once."""


def write_listing(reader: RunReader, name: str, head: Contract, key: str, items: Iterable[dict[str, Any]]) -> None:
    """Put `reports/<name>` in place: the head's fields, then the list under `key`, one item a line. InputError where the disk
    refuses."""
    path = reader.layout.reports / name
    files = Files()
    try:
        files.make_folder(path.parent)
        files.replace_by(path, _written(head, key, items))
    except OSError as error:
        raise disk_error(path, error) from error


def _written(head: Contract, key: str, items: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    yield head.model_dump_json().encode()[:-1] + _opening(key)
    between = b"\n"
    for batch in _batched(items, _BATCH):
        yield between + b",\n".join(map(orjson.dumps, batch))
        between = b",\n"
    yield b"\n]}\n"


def _batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most `size`."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch


def read_head(reader: RunReader, name: str, head: type[Head], key: str) -> Head | None:
    """The head of a report; None where there is no such report. InputError where it cannot be read."""
    path = reader.layout.reports / name
    try:
        with path.open("rb") as file:
            line = file.readline()
    except FileNotFoundError:
        return None
    try:
        return head.model_validate_json(line.removesuffix(_opening(key) + b"\n") + b"}")
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise _unreadable(path, f"{where}{first['msg']}") from None


def read_items(
    reader: RunReader, name: str, key: str, rollout_ids: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The items of a report's list, those of some rollouts if these are named; nothing where there is no such report. InputError
    where one cannot be read."""
    path = reader.layout.reports / name
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    needles = None if rollout_ids is None else [orjson.dumps(one) for one in rollout_ids]
    with file:
        for number, line in enumerate(file, 1):
            # Lines are many and mostly of other rollouts: an id is looked for before anything is parsed.
            if number > 1 and line.startswith(b"{") and (needles is None or any(needle in line for needle in needles)):
                try:
                    item = orjson.loads(line.rstrip(b",\n"))
                except orjson.JSONDecodeError as error:
                    raise _unreadable(path, f"line {number}: {error}") from None
                if rollout_ids is None or item["rollout_id"] in rollout_ids:
                    yield item


def _unreadable(path: Path, problem: str) -> InputError:
    return InputError(f"{path}: a report that cannot be read ({problem}); remove it and make it anew")


def _opening(key: str) -> bytes:
    return b',"' + key.encode() + b'":['
