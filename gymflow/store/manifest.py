"""The commit point of a run: which parts count, from where on the journal does, and which verdict sets there are."""

import re
from pathlib import Path
from typing import TypeVar

import orjson
from pydantic import Field, ValidationError

from gymflow.contracts.base import SCHEMA_VERSION, Contract
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.errors import InputError
from gymflow.store.files import Files, alive
from gymflow.store.layout import RunLayout

M = TypeVar("M", RunDocument, "RunManifest")


class Part(Contract):
    """A committed Parquet file of one table."""

    file: str
    rows: int
    bytes: int


class DeadVerdict(Contract):
    """A verdict in the parts that a later one of the same set took the place of."""

    rollout_id: str
    verdict_set: str
    seq: int


class RecordedFault(Contract):
    """Damage found in a segment that has since been converted; the segment is kept as `<name>.damaged`."""

    segment: str
    offset: int
    length: int
    reason: str


class RunManifest(Contract):
    """`manifest.json`. Readers see its parts, and the journal from segment `journal_from` on, and nothing else."""

    schema_version: int = SCHEMA_VERSION
    parts: dict[str, list[Part]] = Field(default_factory=dict, description="By table.")
    next_part: int = 0
    journal_from: int = Field(0, description="First journal segment whose lines are not in the parts.")
    next_seq: int = Field(0, description="Lines in the parts have smaller sequence numbers.")
    superseded: list[int] = Field(
        default_factory=list, description="Sequence numbers in the parts of failed rollouts that were run again."
    )
    superseded_verdicts: list[DeadVerdict] = Field(default_factory=list)
    verdict_sets: list[VerdictSet] = Field(
        default_factory=list, description="In the order in which they were last scored into; the last is current."
    )
    faults: list[RecordedFault] = Field(default_factory=list)
    finished_at: float | None = Field(None, description="When the journal was last converted in full.")


def read_document(layout: RunLayout) -> RunDocument:
    """`run.json`. Raises InputError where it cannot be read."""
    return _read(layout.document, layout.document.read_bytes(), RunDocument)


def read_manifest(layout: RunLayout) -> RunManifest:
    """The manifest in force. An absent or empty file counts as the first manifest while nothing can have been committed
    through it; after that it is an InputError, because the parts would silently vanish from the run."""
    path = layout.manifest
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    if not data.strip():
        if _nothing_committed(layout):
            return RunManifest()
        raise InputError(f"{path}: lost or empty, though the run has parts; restore it from a backup.")
    return _read(path, data, RunManifest)


def write_manifest(layout: RunLayout, manifest: RunManifest, files: Files) -> None:
    """Put a manifest in force, atomically."""
    files.replace(layout.manifest, manifest.model_dump_json(indent=1).encode())


def unreferenced(layout: RunLayout, manifest: RunManifest) -> list[Path]:
    """Files that crashes left behind: parts that were never committed or are merged, segments in the parts, temporaries."""
    committed = {layout.part(table, part.file) for table, parts in manifest.parts.items() for part in parts}
    stale = [path for path in layout.folder.glob("parts/*/*") if path not in committed]
    stale += [path for path in layout.journal.glob("*.jsonl") if int(path.stem) < manifest.journal_from]
    return [*stale, *(path for path in layout.folder.glob(".*.tmp") if _abandoned(path))]


def _abandoned(temporary: Path) -> bool:
    # Its name has the process that made it, see Files.replace and plan.py.
    owner = re.fullmatch(r"\.[a-z]+\.[a-z]+\.(\d+)(\.\d+)?\.tmp", temporary.name)
    return owner is not None and not alive(int(owner[1]))


def _nothing_committed(layout: RunLayout) -> bool:
    segments = sorted(layout.journal.glob("*.jsonl"))
    return not any(layout.folder.glob("parts/*/*.parquet")) and (not segments or int(segments[0].stem) == 0)


def _read(path: Path, data: bytes, model: type[M]) -> M:
    try:
        found = model.model_validate_json(data)
    except ValidationError as error:
        if (version := _version(data)) > SCHEMA_VERSION:
            raise InputError(f"{path}: written by a newer gymflow (schema {version}); upgrade to read it.") from None
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise InputError(f"{path}: damaged ({where + ': ' if where else ''}{first['msg']}).") from None
    if found.schema_version > SCHEMA_VERSION:
        raise InputError(f"{path}: written by a newer gymflow (schema {found.schema_version}); upgrade to read it.")
    return found


def _version(data: bytes) -> int:
    try:
        return int(orjson.loads(data)["schema_version"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return 0
