"""The session's final state against the expected one.

>>> changed({"mail": {"7": {"folder": "trash"}}}, {"mail": {"7": {"folder": "inbox"}}}, Rules())[0].path
'mail.7.folder'
"""

from typing import Any, Literal

from gymflow.verifiers._compare import MISSING, Difference, Rules, differences, leaves
from gymflow.verifiers._json import shown
from pydantic import BaseModel, Field

from gymflow.verifiers import Anchor, BaseParameters, Evidence, Verdict, Verifier, VerifierError

SHOWN = 20
"""Differences that a verdict lists."""


class StateTask(BaseModel):
    """`expected_state` has the shape of the session's snapshot."""

    expected_state: dict[str, Any]


class State(Verifier[StateTask]):
    """Reward 1.0 when nothing differs, else 0.0; component `matched` is the share of expected values that are there."""

    needs = frozenset({"state"})
    includes = ("_assignment.py", "_compare.py", "_json.py")

    class Parameters(BaseParameters):
        """`exact`: the states are equal. `subset`: what is expected is there, and more may be.

        Path patterns such as `mail.*.read_at` say what is not compared, and which lists have no order.
        """

        match: Literal["exact", "subset"] = "exact"
        tolerance: float = Field(0.0, ge=0, description="Numbers may differ by so much.")
        ignored: tuple[str, ...] = ()
        unordered: tuple[str, ...] = ()

    async def verify(self, task: StateTask, evidence: Evidence) -> Verdict:
        """Raises VerifierError where no snapshot was taken."""
        if evidence.snapshot is None:
            raise VerifierError("the rollout has no snapshot of its session's state")
        parameters = self.parameters
        rules = Rules(
            tolerance=parameters.tolerance,
            subset=parameters.match == "subset",
            ignored=parameters.ignored,
            unordered=parameters.unordered,
        )
        found = changed(task.expected_state, evidence.snapshot, rules)
        total = leaves(task.expected_state)
        absent = sum(leaves(one.expected) for one in found if one.expected is not MISSING)
        return Verdict(
            reward=float(not found),
            components={"matched": max(0, total - absent) / total},
            reason=_reason(found),
            anchors=tuple(Anchor(locator=f"snapshot/{one.path.replace('.', '/')}") for one in found[:SHOWN]),
            details={"differences": [_shown(one) for one in found[:SHOWN]], "count": len(found)} if found else {},
        )


def changed(expected: dict[str, Any], actual: dict[str, Any], rules: Rules) -> list[Difference]:
    """Where the states differ, in the order of the expected one."""
    return list(differences(expected, actual, rules))


def _reason(found: list[Difference]) -> str | None:
    if not found:
        return None
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(map(str, found[:3])) + more


def _shown(difference: Difference) -> dict[str, str | None]:
    return {
        "path": difference.path,
        "expected": None if difference.expected is MISSING else shown(difference.expected),
        "actual": None if difference.actual is MISSING else shown(difference.actual),
    }
