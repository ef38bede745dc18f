"""What there is to choose from, and what was chosen, as tables of text."""

from collections.abc import Iterator
from datetime import UTC, datetime

from gymflow.analysis.sheets import Sheet
from gymflow.contracts.decision import Decision
from gymflow.contracts.diagnosis import Diagnosis


def choice_sheets(diagnosis: Diagnosis) -> Iterator[Sheet]:
    """The ranked list, the one that promises most first."""
    yield Sheet(
        f"run {diagnosis.run_id}: interventions to choose from",
        ("rank", "intervention", "environment", "agent", "gain at most", "rollouts", "because of", "such as"),
        [
            (
                str(rank),
                one.intervention,
                one.environment,
                one.agent,
                "-" if one.gain is None else f"{one.gain:+.3f}",
                str(one.rollouts),
                ", ".join(f"{cause} {count}" for cause, count in one.causes.items()),
                ", ".join(one.supported_by[:2]),
            )
            for rank, one in enumerate(diagnosis.proposals, 1)
        ],
    )


def decision_sheets(decision: Decision) -> Iterator[Sheet]:
    """One decision."""
    score = "no score" if decision.score is None else f"the score is {decision.score:.3f}"
    gain = "unknown" if decision.gain is None else f"{decision.gain:+.3f} at most; {score}"
    when = datetime.fromtimestamp(decision.decided_at, UTC)
    yield Sheet(
        f"decision {decision.decision_id}",
        ("", "value"),
        [
            ("run", decision.run_id),
            ("chosen", f"{decision.intervention} ({decision.environment}, {decision.agent})"),
            ("place in the list", f"{decision.rank} of {decision.choices}"),
            ("predicted gain", gain),
            ("supported by", f"{decision.rollouts} rollouts, such as {', '.join(decision.supported_by[:3])}"),
            ("decided by", f"{decision.decided_by}, {when:%Y-%m-%d %H:%M} UTC"),
            ("because", decision.reason),
        ],
    )
