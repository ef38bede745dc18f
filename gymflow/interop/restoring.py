"""A run of ours comes back out of a file that one was exported to."""

import asyncio
from collections.abc import Iterable
from itertools import chain, islice

from gymflow.contracts.exchange import ImportReport
from gymflow.contracts.outcome import Status
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.run import RunDocument, VerdictSet
from gymflow.contracts.verdict import VerdictRecord
from gymflow.errors import InputError
from gymflow.interop.continuing import created_or_continued
from gymflow.interop.importing import CHUNK, Source
from gymflow.interop.rollouts import ForeignRollout, OwnRollout
from gymflow.store import Store, rollout_id


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
    tasks: dict[int, PlannedTask] = {}
    plan: list[PlannedRollout] = []
    run, verdict_sets = None, None
    for own in map(_own, chain([first], rest)):
        tasks.setdefault(own.task.task_index, own.task)
        plan.append(own.planned)
        if own.run is not None:
            run, verdict_sets = own.run, own.verdict_sets
    if run is None or verdict_sets is None:
        raise InputError("no rollout of the file holds the run that it is of; export the whole run again")
    document = run.model_copy(update={"run_id": run_id})
    plan.sort(key=lambda row: row.plan_index)
    held = created_or_continued(store, document, [tasks[index] for index in sorted(tasks)], plan)
    return await _commit(store, document, verdict_sets, again, held, (len(tasks), len(plan)), format)


async def _commit(
    store: Store,
    document: RunDocument,
    verdict_sets: list[VerdictSet],
    again: Source,
    held: frozenset[int],
    sizes: tuple[int, int],
    format: str,
) -> ImportReport:
    completed = failed = scored = 0
    current = verdict_sets[-1].name if verdict_sets else None
    async with store.writer(document.run_id) as writer:
        for one in verdict_sets:
            await writer.add_verdict_set(one)
        rollouts = again()
        while batch := list(islice(rollouts, CHUNK)):
            commits = []
            for own in map(_own, batch):
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
    return ImportReport(
        run_id=document.run_id,
        format=format,
        environment="+".join(document.environments),
        verifier=", ".join(sorted({one.manifest.verifier.name for one in document.environments.values()})),
        verdict_set=current,
        tasks=sizes[0],
        rollouts=sizes[1],
        completed=completed,
        failed=failed,
        scored=scored,
        gaps={},
        notes=["a run of gymflow: everything that it held is back"],
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
