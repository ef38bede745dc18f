"""Recorded step rewards."""

import math
from typing import Any

import pytest
from gymflow.verifiers.episode import Episode

from gymflow.contracts.trajectory import Gap, Step, Trajectory, Turn
from gymflow.verifiers import Evidence, VerifierError


def played(*steps: Step | None, **more: Any) -> Evidence:
    turns = [Turn(index=index, step=step) for index, step in enumerate(steps)]
    return Evidence(response={"output": []}, trajectory=Trajectory(turns=turns, **more))


STEPS = (Step(reward=0.25), None, Step(), Step(reward=1.0, done=True))


@pytest.mark.parametrize(
    ("how", "reward"), [("sum", 1.25), ("last", 1.0), ("max", 1.0), ("mean", 0.625), ("success", 1.0)]
)
def test_rewards_combine(how: str, reward: float, score: Any) -> None:
    verdict = score(Episode, {}, played(*STEPS), {"reward": how})
    assert verdict.reward == reward
    assert verdict.components == {"steps": 2.0, "ended": 1.0}
    assert verdict.anchors[0].locator == "turns/3/step"


@pytest.mark.parametrize(
    "steps", [(Step(reward=1.0),), (Step(reward=1.0, done=True, truncated=True),), (Step(reward=0.0, done=True),), ()]
)
def test_success_needs_an_end_that_was_reached_with_a_reward(steps: tuple[Step, ...], score: Any) -> None:
    verdict = score(Episode, {}, played(*steps), {"reward": "success"})
    assert verdict.reward == 0.0
    assert verdict.reason


def test_an_agent_that_did_nothing_earned_nothing(score: Any) -> None:
    verdict = score(Episode, {}, played(None, None))
    assert (verdict.reward, verdict.reason) == (0.0, "no step gave a reward")


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_an_error(reward: float, score: Any) -> None:
    with pytest.raises(VerifierError, match="finite"):
        score(Episode, {}, played(Step(reward=reward)))


def test_unknown_turns_are_an_error_not_a_zero(score: Any) -> None:
    with pytest.raises(VerifierError, match="no turns"):
        score(Episode, {}, played(gaps=[Gap(code="no_turns")]))
