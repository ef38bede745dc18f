"""The rewards that the environment gave step by step.

>>> combine([0.0, 0.5, 1.0], "sum"), combine([0.0, 0.5, 1.0], "last")
(1.5, 1.0)
"""

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from gymflow.contracts.trajectory import Step, Trajectory
from gymflow.verifiers import Anchor, BaseParameters, Evidence, Verdict, Verifier, VerifierError

Reward = Literal["sum", "last", "max", "mean", "success"]


class EpisodeTask(BaseModel):
    """No fields: the rewards are evidence."""


class Episode(Verifier[EpisodeTask]):
    """Step rewards combined into one; none at all is 0.0, a reward that is not finite an error."""

    needs = frozenset({"trajectory"})

    class Parameters(BaseParameters):
        """`success`: 1.0 where the last step ended the episode (not by truncation) with a reward above zero, else 0.0."""

        reward: Reward = "sum"

    async def verify(self, task: EpisodeTask, evidence: Evidence) -> Verdict:
        """Raises VerifierError where the trajectory has no turns to read, or holds a reward that is no number."""
        trajectory = evidence.trajectory
        if any(gap.code == "no_turns" for gap in trajectory.gaps):
            raise VerifierError("the trajectory has no turns, so its step rewards are unknown")
        steps = _steps(trajectory)
        rewards = [step.reward for _, step in steps if step.reward is not None]
        if not all(map(math.isfinite, rewards)):
            raise VerifierError("a step's reward is not finite")
        final = steps[-1][1] if steps else Step()
        ended = final.done and not final.truncated
        if self.parameters.reward == "success":
            reward = float(ended and (final.reward or 0.0) > 0)
        else:
            reward = combine(rewards, self.parameters.reward)
        return Verdict(
            reward=reward,
            components={"steps": float(len(rewards)), "ended": float(ended)},
            reason=None if reward > 0 else _reason(rewards, ended),
            anchors=(Anchor(locator=steps[-1][0]),) if steps else (),
        )


def combine(rewards: Sequence[float], how: Reward) -> float:
    """Sum, last, largest or mean; 0.0 of none."""
    if not rewards:
        return 0.0
    if how == "last":
        return rewards[-1]
    if how == "max":
        return max(rewards)
    return math.fsum(rewards) / (len(rewards) if how == "mean" else 1)


def _steps(trajectory: Trajectory) -> list[tuple[str, Step]]:
    steps = [("start", trajectory.start)]
    steps.extend((f"turns/{turn.index}/step", turn.step) for turn in trajectory.turns)
    return [(locator, step) for locator, step in steps if step is not None]


def _reason(rewards: Sequence[float], ended: bool) -> str:
    if not rewards:
        return "no step gave a reward"
    return f"{len(rewards)} rewarded steps, the last of {rewards[-1]:g}, {'to the end' if ended else 'without reaching an end'}"
