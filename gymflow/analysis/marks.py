"""What health and diagnosis say of one rollout, each at the turn that it speaks of."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gymflow.analysis import diagnose, health
from gymflow.analysis.listing import read_items
from gymflow.analysis.moments import turn_of_call
from gymflow.contracts.rollout import RolloutRecord
from gymflow.store import RunReader

Kind = Literal["finding", "label", "reading"]


@dataclass(frozen=True, slots=True)
class Mark:
    """One finding of a health check, label of the diagnosis, or label that a model gave (`reading`). `shown`: what it cites."""

    kind: Kind
    level: Literal["info", "warning", "error"]
    name: str
    locator: str
    shown: str

    def turn(self, record: RolloutRecord) -> int | None:
        """The turn that it speaks of; None: the rollout as a whole."""
        part, _, rest = self.locator.partition("/")
        number = rest.partition("/")[0]
        if not number.isdecimal():
            return None
        if part == "turns":
            return int(number)
        return turn_of_call(record).get(int(number)) if part == "calls" else None


def marks_of(
    reader: RunReader, verdict_set: str | None, rollout_ids: Collection[str] | None = None
) -> dict[str, list[Mark]]:
    """By rollout id what the last reports of a run say; of all rollouts unless some are named. Empty where nothing was examined.

    What was said of the verdicts of another set than `verdict_set` is left out: all labels, and findings that cite a verdict.
    """
    found: dict[str, list[Mark]] = {}
    for rollout_id, mark in _marks(reader, verdict_set, rollout_ids):
        found.setdefault(rollout_id, []).append(mark)
    return found


def _marks(reader: RunReader, verdict_set: str | None, wanted: Collection[str] | None) -> Iterator[tuple[str, Mark]]:
    diagnosis, readings, examined = (
        diagnose.last_diagnosis(reader),
        diagnose.last_readings(reader),
        health.last_report(reader),
    )
    if diagnosis is not None and diagnosis.verdict_set == verdict_set:
        for item in read_items(reader, diagnose.REPORT, diagnose.LIST, wanted):
            yield from _label(item, "label")
    if readings is not None and readings.verdict_set == verdict_set:
        for item in read_items(reader, diagnose.READINGS, diagnose.LIST, wanted):
            yield from _label(item, "reading")
    if examined is None:
        return
    for item in read_items(reader, health.REPORT, health.LIST, wanted):
        locator = item["locator"] or "rollout"
        if item["rollout_id"] is None or (examined.verdict_set != verdict_set and locator.startswith("verdict")):
            continue
        yield item["rollout_id"], Mark("finding", item["severity"], item["check"], locator, item["message"])


def _label(item: dict[str, Any], kind: Kind) -> Iterator[tuple[str, Mark]]:
    """One mark for each place in the rollout itself that the label cites; what it cites elsewhere is not beside a turn of it."""
    name = f"{item['root_cause']}: {item['cause']}"
    own = [one for one in item["citations"] if one["rollout_id"] == item["rollout_id"]]
    for one in own or item["citations"][:1]:
        yield item["rollout_id"], Mark(kind, "warning", name, one["locator"], one["shows"])
