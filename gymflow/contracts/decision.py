"""A decision: which intervention was chosen from the ranked list of a diagnosis, by whom and why."""

from typing import Literal

from pydantic import Field

from gymflow.contracts.base import SCHEMA_VERSION, Contract
from gymflow.contracts.diagnosis import Intervention
from gymflow.contracts.estimate import Interval


class Decision(Contract):
    """One row of the view `decisions`. Written once, never changed; a later run may name it as the one that it tests."""

    schema_version: int = SCHEMA_VERSION
    decision_id: str
    run_id: str
    verdict_set: str | None
    environment: str
    agent: str
    intervention: Intervention
    rank: int = Field(ge=1, description="Its place in the list that it was chosen from; 1 promised most.")
    choices: int = Field(ge=1, description="The length of that list.")
    gain: float | None = Field(description="The prediction: the most that it could add to the score.")
    score: float | None = Field(description="Of the environment and agent when it was decided.")
    rollouts: int = Field(description="How many speak for it.")
    supported_by: list[str] = Field(description="Their ids, the first few.")
    decided_at: float = Field(description="Seconds since the epoch.")
    decided_by: str = Field(min_length=1)
    reason: str = Field(min_length=1)


class Prediction(Contract):
    """What became of a decision in a run that tests it, against the run that it was made on."""

    decision_id: str
    intervention: Intervention
    environment: str
    outcome: Literal["came", "came_in_part", "not_shown", "got_worse", "not_comparable"] = Field(
        description="came: surely better, and the predicted gain is within the interval; came_in_part: surely better, and surely by "
        "less; not_shown: the interval of the difference includes 0; got_worse: surely worse."
    )
    predicted: float | None
    observed: float | None = Field(description="Difference of the scores over the tasks that both runs scored.")
    interval: Interval | None
    tasks: int
    detail: str
