"""Stored actions played again in a fresh session, for verifiers that judge a state which was not kept."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from gymflow.contracts.rollout import EvidenceRecord, RolloutRecord
from gymflow.contracts.trajectory import Step, Trajectory
from gymflow.environments import Session
from gymflow.errors import InputError, RolloutFailure
from gymflow.runtime.components import RunEnvironment, RunTask
from gymflow.runtime.replay import play
from gymflow.verifiers import VerifierError

SHOWN = 120


class ReplayRefused(VerifierError):
    """The actions cannot be played again, or the environment answers otherwise than it did."""


async def replayed(
    record: RolloutRecord,
    task: RunTask,
    environment: RunEnvironment,
    put_artifact: Callable[[bytes], Awaitable[str]],
    timeout_s: float,
) -> EvidenceRecord:
    """The evidence of the same actions in a fresh session. Raises ReplayRefused, naming the turn that differs."""
    trajectory = record.evidence.trajectory
    outputs = []
    for turn in trajectory.turns:
        call = None if turn.model_call is None else record.model_calls[turn.model_call]
        if call is None or call.status != "ok":
            raise ReplayRefused(f"turn {turn.index} has no answer of the model to play again")
        outputs.append(call.output)
    contents: dict[str, bytes] = {}

    def keep(content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        contents[digest] = content
        return digest

    session: Session = environment.open_session(task.task, record.rollout.seed or 0)
    try:
        evidence = await play(session, outputs, put_artifact=keep, timeout_s=timeout_s)
    except (InputError, RolloutFailure) as error:
        raise ReplayRefused(f"the replay failed: {error}") from error
    if (difference := first_difference(trajectory, evidence.trajectory)) is not None:
        raise ReplayRefused(f"the replay differs: {difference}")
    for content in contents.values():
        await put_artifact(content)
    return evidence


def first_difference(recorded: Trajectory, again: Trajectory) -> str | None:
    """Where the environment's answers differ first: the opening, a tool's output, or what it said after a message."""
    if (found := _steps_differ(recorded.start, again.start)) is not None:
        return f"at the start {found}"
    for before, after in zip(recorded.turns, again.turns, strict=True):
        for number, (one, other) in enumerate(zip(before.tool_calls, after.tool_calls, strict=True)):
            if (one.output, one.status) != (other.output, other.status):
                return (
                    f"turn {before.index}, tool call {number} ({one.name}) gave {_shown(other.output)}, "
                    f"and {_shown(one.output)} when it was recorded"
                )
        if (found := _steps_differ(before.step, after.step)) is not None:
            return f"turn {before.index}: {found}"
    return None


def _steps_differ(one: Step | None, other: Step | None) -> str | None:
    if one == other:
        return None
    if one is None or other is None:
        return f"the environment said {'nothing' if other is None else 'something'}, otherwise than it did"
    for name in Step.model_fields:
        before, after = getattr(one, name), getattr(other, name)
        if before != after:
            return f"{name} is {_shown(after)}, and was {_shown(before)}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
