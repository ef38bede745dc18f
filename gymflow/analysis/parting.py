"""Where two rollouts of a task part: the first turn at which they do something else (compare `diagnose.divergences`, which finds the
closest pairs of a whole run)."""

from collections.abc import Sequence

from gymflow.contracts.rollout import RolloutRecord


def moves(record: RolloutRecord, answer: str | None) -> list[str]:
    """What each turn did: its tool calls, or `says`; the last one that says something is the answer that was scored, where there is
    one."""
    found = [
        "; ".join(f"{tool.name}({tool.arguments})" for tool in turn.tool_calls) or "says"
        for turn in record.evidence.trajectory.turns
    ]
    if answer is not None and found and found[-1] == "says":
        found[-1] = f"answers {answer}"
    return found


def parting(one: Sequence[str], other: Sequence[str]) -> int | None:
    """The first turn at which two lists of moves differ, also where one ends; None: they are the same."""
    for turn, (first, second) in enumerate(zip(one, other, strict=False)):
        if first != second:
            return turn
    return None if len(one) == len(other) else min(len(one), len(other))
