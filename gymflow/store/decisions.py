"""The decisions of a store: one small file each beside the run that it was made on, never rewritten."""

from collections.abc import Iterator

from pydantic import ValidationError

from gymflow.contracts.decision import Decision
from gymflow.errors import InputError
from gymflow.store.catalog import Store
from gymflow.store.files import Files, disk_error
from gymflow.store.layout import RunLayout
from gymflow.suggest import did_you_mean


def add_decision(store: Store, decision: Decision) -> None:
    """Put a decision in place, durably. InputError where the disk refuses."""
    folder = store.layout.run(decision.run_id).decisions
    path = folder / f"{decision.decision_id}.json"
    files = Files()
    try:
        files.make_folder(folder)
        files.replace(path, decision.model_dump_json(indent=1).encode())
    except OSError as error:
        raise disk_error(path, error) from error


def decisions_of(layout: RunLayout) -> Iterator[Decision]:
    """The decisions on a run. InputError names a file that is no decision."""
    for path in sorted(layout.decisions.glob("*.json")):
        try:
            yield Decision.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise InputError(f"{path}: not a decision: {error.errors()[0]['msg']}") from None


def find_decision(store: Store, name: str) -> Decision:
    """A decision by its id or a unique beginning of it. InputError with a proposal where there is none."""
    known = {one.decision_id: one for run in store.runs() for one in decisions_of(store.layout.run(run.run_id))}
    if name in known:
        return known[name]
    matching = [decision_id for decision_id in known if name and decision_id.startswith(name)]
    if len(matching) == 1:
        return known[matching[0]]
    if matching:
        raise InputError(f"decision {name!r} is the beginning of {len(matching)}: {', '.join(sorted(matching)[:5])}")
    raise InputError(f"no decision {name!r} in {store.address}; {did_you_mean(name, known)}")
