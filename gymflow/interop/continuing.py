"""An import that was cut short goes on where it ended."""

from collections.abc import Sequence

from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.run import RunDocument
from gymflow.errors import InputError
from gymflow.store import Store


def created_or_continued(
    store: Store, document: RunDocument, tasks: Sequence[PlannedTask], plan: Sequence[PlannedRollout]
) -> frozenset[int]:
    """Create the run, or find that an earlier import of the same file began it; returns the plan indices that it holds.

    InputError where the run's id is taken by another run, or by a whole import of this file.
    """
    run_id = document.run_id
    if not store.holds(run_id):
        store.create_run(document, tasks, plan)
        return frozenset()
    reader = store.run(run_id)
    begun = [row.rollout_key for row in reader.plan()]
    if reader.document.fingerprint != document.fingerprint or begun != [row.rollout_key for row in plan]:
        raise InputError(
            f"run {run_id} exists already in {store.address}, and not from this file; choose another --run-id"
        )
    held = frozenset(reader.completed())
    if len(held) == len(begun):
        raise InputError(f"run {run_id} exists already in {store.address}, and holds the whole file")
    return held
