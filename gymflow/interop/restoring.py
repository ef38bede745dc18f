"""A run of ours comes back out of a file that one was exported to."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice

from gymflow.contracts.exchange import ImportReport
from gymflow.contracts.outcome import Status
from gymflow.contracts.plan import PlannedRollout
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunDocument
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.interop.continuing import created_or_continued
from gymflow.interop.importing import CHUNK, Source
from gymflow.interop.rollouts import ForeignRollout, OwnRollout
from gymflow.store import Store, rollout_id
from gymflow.store.encoding import dumps


async def restore(
    store: Store,
    first: OwnRollout,
    rest: Iterable[OwnRollout | ForeignRollout],
    again: Source,
    run_id: str,
    format: str,
) -> ImportReport:
    """Create the run as it was, under `run_id`, or go on with one that was cut short, and commit every rollout of the file. `rest` is
    what follows the first."""
    whole: OwnRollout | None = None
    seen: dict[int, _Seen] = {}
    for own in map(_own, chain([first], rest)):
        index, found = own.planned.plan_index, _Seen(own.where, own.planned, _digest(own))
        before = seen.setdefault(index, found)
        if before.digest != found.digest:
            raise InputError(
                f"{own.where}: rollout {index} of the plan stands at {before.where} already, and differs; keep one of them"
            )
        whole = own if own.run is not None else whole
    if whole is None or whole.run is None:
        raise InputError("no rollout of the file holds the run that it is of; export the whole run again")
    if whole.format not in (None, format):
        raise InputError(
            f"{whole.where}: the run was exported as {whole.format}; import it with --format {whole.format}"
        )
    planned = {row.plan_index: row for row in whole.plan}
    for index, one in seen.items():
        if planned.get(index) != one.planned:
            raise InputError(f"{one.where}: rollout {index} is not of the plan of run {whole.run.run_id}")
    document = whole.run.model_copy(update={"run_id": run_id})
    held = created_or_continued(store, document, whole.tasks, whole.plan)
    return await _commit(store, document, whole, again, held, format)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the first reading keeps of a rollout."""

    where: str
    planned: PlannedRollout
    digest: bytes


def _digest(own: OwnRollout) -> bytes:
    """Of the rollout and its verdicts; equal for the same line twice."""
    value = [own.record.model_dump(mode="json"), [one.model_dump(mode="json") for one in own.verdicts]]
    return hashlib.sha256(dumps(value)[0]).digest()


async def _commit(
    store: Store,
    document: RunDocument,
    whole: OwnRollout,
    again: Source,
    held: frozenset[int],
    format: str,
) -> ImportReport:
    completed = failed = scored = 0
    seen: set[int] = set()
    verdict_sets = whole.verdict_sets or []
    current = verdict_sets[-1].name if verdict_sets else None
    async with store.writer(document.run_id) as writer:
        for one in verdict_sets:
            await writer.add_verdict_set(one)
        rollouts = again()
        while batch := list(islice(rollouts, CHUNK)):
            commits = []
            for own in map(_own, batch):
                if own.planned.plan_index in seen:
                    continue
                seen.add(own.planned.plan_index)
                for data in own.artifacts.values():
                    await writer.put_artifact(data)
                record, verdicts = renamed(own, document.run_id)
                completed += record.rollout.status is Status.COMPLETED
                failed += record.rollout.status is Status.FAILED
                scored += any(one.verdict is not None and one.verdict_set == current for one in verdicts)
                if record.rollout.plan_index not in held:
                    commits.append(writer.commit(record, verdicts))
            await asyncio.gather(*commits)
        await writer.finish()
    missing = len(whole.plan) - len(seen)
    notes = [f"{missing} of {len(whole.plan)} planned rollouts are not in the file and count as missing"] * bool(
        missing
    )
    return ImportReport(
        run_id=document.run_id,
        format=format,
        environment="+".join(document.environments),
        verifier=", ".join(sorted({one.manifest.verifier.name for one in document.environments.values()})),
        verdict_set=current,
        tasks=len(whole.tasks),
        rollouts=len(seen),
        completed=completed,
        failed=failed,
        scored=scored,
        gaps={},
        notes=[*notes, "a run of gymflow: everything that it held is back"],
    )


def renamed(own: OwnRollout, run_id: str) -> tuple[RolloutRecord, list[VerdictRecord]]:
    """The rollout and its verdicts under the name that the run has here."""
    rollout = own.record.rollout
    if rollout.run_id == run_id:
        return own.record, own.verdicts
    name = rollout_id(run_id, rollout.plan_index)
    record = own.record.model_copy(
        update={"rollout": rollout.model_copy(update={"run_id": run_id, "rollout_id": name})}
    )
    return record, [one.model_copy(update={"run_id": run_id, "rollout_id": name}) for one in own.verdicts]


def _own(rollout: OwnRollout | ForeignRollout) -> OwnRollout:
    if not isinstance(rollout, OwnRollout):
        raise InputError("the file mixes rollouts that gymflow exported with others; import them apart")
    return rollout
