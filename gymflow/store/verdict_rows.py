"""Verdicts as the journal's lines hold them. Whoever judged may make the text, in a process of its own, too."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gymflow.contracts.outcome import VerdictFailure
from gymflow.contracts.verdict import VerdictRecord
from gymflow.store import encoding
from gymflow.store.layout import plan_index_of


class VerdictRow(NamedTuple):
    """One verdict: where it belongs, whether it has a reward, and its JSON text with the flags of what was odd in it."""

    verdict_set: str
    plan_index: int
    scored: bool
    text: bytes
    flags: list[str]


@dataclass(slots=True)
class VerdictRows:
    """Several verdicts, and the artifacts that have to be durable before them."""

    rows: list[VerdictRow] = field(default_factory=list)
    artifacts: encoding.Artifacts = field(default_factory=dict)

    def extend(self, others: "VerdictRows") -> None:
        """Add others behind these."""
        self.rows += others.rows
        self.artifacts |= others.artifacts

    @property
    def text(self) -> bytes:
        """A JSON array."""
        return b"[%s]" % b",".join([row.text for row in self.rows])

    @property
    def flags(self) -> list[list[str]] | None:
        """The flags of each, where any has one."""
        flags = [row.flags for row in self.rows]
        return flags if any(flags) else None


def encoded(records: Iterable[VerdictRecord]) -> VerdictRows:
    """The rows of verdicts. A reward that no mean could be taken of becomes a verifier error."""
    made = VerdictRows()
    for record in records:
        record = _finite(record)
        said = [call.call.output for call in record.calls]
        text, flags = encoding.dumps(
            record, made.artifacts, loose=record.verdict and (record.verdict.components, record.verdict.details, said)
        )
        made.rows.append(
            VerdictRow(record.verdict_set, plan_index_of(record.rollout_id), record.verdict is not None, text, flags)
        )
    return made


def _finite(record: VerdictRecord) -> VerdictRecord:
    """The record itself, or a verifier error where its reward is not finite."""
    if record.verdict is None or record.verdict.reward - record.verdict.reward == 0.0:
        return record
    return record.model_copy(
        update={
            "verdict": None,
            "passed": None,
            "failure": VerdictFailure.VERIFIER_ERROR,
            "failure_message": f"the verifier returned the reward {record.verdict.reward}, which is not finite",
        }
    )
