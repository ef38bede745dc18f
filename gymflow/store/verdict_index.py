"""Which rollouts have a verdict in a set. Read when a set is first written to: most runs never need it."""

import pyarrow.compute as pc
import pyarrow.parquet as pq

from gymflow.store.journal import scan
from gymflow.store.layout import RunLayout, plan_index_of
from gymflow.store.manifest import RunManifest
from gymflow.store.state import segments
from gymflow.store.tables import parse_line

_SCORED = -1


class VerdictIndex:
    """Per set and plan index: scored, or the sequence number of a verdict that failed."""

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout
        self._sets: dict[str, dict[int, int]] = {}
        self._loaded: set[str] = set()
        self._claimed: set[tuple[str, int]] = set()

    def knows(self, verdict_set: str) -> bool:
        """Whether the set was loaded."""
        return verdict_set in self._loaded

    def wants(self, verdict_set: str, plan_index: int) -> bool:
        """Whether a set lacks a reward for a rollout and nobody is about to write one; whoever asked is then to `decide` it."""
        if (verdict_set, plan_index) in self._claimed or self._sets[verdict_set].get(plan_index) == _SCORED:
            return False
        self._claimed.add((verdict_set, plan_index))
        return True

    def decide(self, verdict_set: str, plan_index: int, seq: int | None, scored: bool) -> None:
        """Count in what came of a wanted verdict; `seq` None: it was not written."""
        self._claimed.discard((verdict_set, plan_index))
        if seq is not None:
            self.add(verdict_set, plan_index, seq, scored)

    def all_scored(self, verdict_set: str) -> set[int]:
        """Plan indices with a reward in the set."""
        return {index for index, seq in self._sets[verdict_set].items() if seq == _SCORED}

    def failed(self, verdict_set: str, plan_index: int) -> int | None:
        """Sequence number of the verdict that failed, if one did."""
        seq = self._sets[verdict_set].get(plan_index, _SCORED)
        return None if seq == _SCORED else seq

    def add(self, verdict_set: str, plan_index: int, seq: int, scored: bool) -> None:
        """Count a verdict in that has just become durable; one of a set that nobody asked for is found when it is loaded."""
        if (known := self._sets.get(verdict_set)) is not None:
            known[plan_index] = _SCORED if scored else seq

    def load(self, verdict_set: str, manifest: RunManifest) -> None:
        """Read what is durable of a set. Verdicts that are added meanwhile are kept."""
        added = self._sets.setdefault(verdict_set, {})
        found: dict[int, int] = {}
        for part in manifest.parts.get("verdicts", ()):
            table = pq.read_table(
                self._layout.part("verdicts", part.file), columns=["rollout_id", "verdict_set", "seq", "reward"]
            )
            table = table.filter(pc.equal(table["verdict_set"], verdict_set))
            columns = (table[name].to_pylist() for name in ("rollout_id", "seq", "reward"))
            for rollout, seq, reward in zip(*columns, strict=True):
                _count(found, plan_index_of(rollout), seq, reward is not None)
        for path in segments(self._layout, manifest):
            for _, text in scan(path):
                line = parse_line(text)
                for row in line["verdicts"]:
                    if row["verdict_set"] == verdict_set:
                        _count(found, plan_index_of(row["rollout_id"]), line["seq"], row["verdict"] is not None)
        for plan_index, seq in found.items():
            added.setdefault(plan_index, seq)
        self._loaded.add(verdict_set)


def _count(found: dict[int, int], plan_index: int, seq: int, scored: bool) -> None:
    if found.get(plan_index) != _SCORED:
        found[plan_index] = _SCORED if scored else seq
