"""Every row of every split: readable, of the right shape for the verifier, with an input, and not there twice."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from pydantic import BaseModel

from gymflow import keys
from gymflow.contracts.environment import Manifest
from gymflow.contracts.task import Task
from gymflow.datasets import RowFault, Source, dataset_digest, read_rows, source_of
from gymflow.datasets.source import generate
from gymflow.registry import EnvironmentEntry
from gymflow.validation.cache import SplitCache
from gymflow.validation.duplicates import Duplicates
from gymflow.validation.licences import licence_fault
from gymflow.validation.report import SHOWN, Fault, SplitReport

SAME_START = 20
"""So many rows of a generator are made a second time, to see whether they come out equal."""


def check_split(
    entry: EnvironmentEntry,
    manifest: Manifest,
    split: str,
    task_fields: type[BaseModel] | None,
    verifier_digest: str,
    cache: SplitCache,
) -> SplitReport:
    """Read a split to its end, or take the report of its unchanged file from the cache. InputError when there is no such file."""
    source = source_of(entry, split)
    schema = _schema_digest(manifest, task_fields, verifier_digest)
    if source.file is not None:
        if known := cache.get(source.file, schema):
            return known
        stat = cache.stat(source.file)
    report = SplitReport(split, source.name)
    duplicates = Duplicates()
    for row in read_rows(source, manifest, task_fields):
        report.rows += 1
        if isinstance(row, list):
            report.bad_rows += 1
            _count(report, row)
            continue
        duplicates.add(row.line, row.task, row.items)
        _count(report, list(_licence(source, row.line, row.fields)))
    if not report.rows:
        _count(report, [RowFault(source.name, 1, None, "the split has no rows")])
    report.warnings = duplicates.warnings()
    if source.file is None:
        _check_repeatable(source, report)
    report.digest = dataset_digest(entry, split)
    if source.file is not None:
        cache.put(source.file, schema, stat, report)
    return report


def _count(report: SplitReport, faults: list[RowFault]) -> None:
    report.fault_count += len(faults)
    for fault in faults[: max(0, SHOWN - len(report.faults))]:
        report.faults.append(Fault(fault.message, fault.source, fault.line, fault.field))


def _licence(source: Source, line: int, row: dict[str, Any]) -> Iterator[RowFault]:
    for name in ("license", "licence"):
        value = row.get(name)
        if isinstance(value, str) and (fault := licence_fault(value)):
            yield RowFault(source.name, line, name, fault)


def _check_repeatable(source: Source, report: SplitReport) -> None:
    for number, (first, second) in enumerate(
        zip(islice(generate(source), SAME_START), generate(source), strict=False), 1
    ):
        if first != second:
            message = (
                "the generator makes another row the second time; draw from random.Random(seed), not from the clock"
            )
            _count(report, [RowFault(source.name, number, None, message)])
            return


def _schema_digest(manifest: Manifest, task_fields: type[BaseModel] | None, verifier_digest: str) -> str:
    return keys.digest(
        {
            "task": _json_schema(Task),
            "fields": _json_schema(task_fields) if task_fields else None,
            "verifier": verifier_digest,
            "prompt": manifest.prompt.model_dump(mode="json") if manifest.prompt else None,
            "session": manifest.session is not None,
        }
    )


@lru_cache(maxsize=16)
def _json_schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()
