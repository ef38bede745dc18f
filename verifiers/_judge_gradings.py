"""Four ways to grade: against a reference, by a rubric of criteria, on a scale, and as the better of two answers.

Each says what the judge is told, which JSON it must give, how that is read, and what several votes come to.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, get_args

from gymflow.verifiers._judge_replies import Form, holds_object, no_verdict, rationale, stated, unfit, verdict_object
from pydantic import BaseModel, ConfigDict, Field

from gymflow.verifiers import Verdict

Better = Literal["first", "second", "tie"]
_NUMBER = r"-?\d++(?:\.\d++)?+"


class Criterion(BaseModel):
    """One criterion of a rubric. Negative points are for what an answer must not do."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    criterion: str
    points: float = Field(1.0, allow_inf_nan=False)
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one vote says."""

    value: Any
    reasoning: str | None = None


class Grading(ABC):
    """One way to grade. `how` is told to the judge, `form` is the JSON that it must end with, `schema` its schema."""

    how: str
    form: str
    schema: dict[str, Any]

    @abstractmethod
    def read(self, text: str) -> Opinion:
        """The opinion in a judge's message. Raises JudgeUnparseable or JudgeRefused."""

    @abstractmethod
    def combine(self, opinions: Sequence[Opinion]) -> Verdict:
        """What the votes come to."""


class ByReference(Grading):
    """One grade out of several, by comparison with an expected answer. The most voted grade counts; of grades that tie, the one
    with the lowest reward."""

    def __init__(self, grades: Mapping[str, float]) -> None:
        self.grades = grades
        listed = ", ".join(f'"{grade}"' for grade in grades)
        self.how = (
            "Decide which grade the answer deserves by comparing it with the expected answer. Judge the meaning, not the wording; "
            "what the expected answer does not ask for neither helps nor harms. An answer that commits to several different "
            f"results is not correct. Grades: {listed}."
        )
        self.form = f'{{"reasoning": "...", "grade": one of {listed}}}'
        self.schema = _object({"reasoning": {"type": "string"}, "grade": {"type": "string", "enum": list(grades)}})

    def read(self, text: str) -> Opinion:
        labels = "|".join(sorted(map(re.escape, self.grades), key=len, reverse=True))
        form = Form("grade", labels, lambda grade: grade if isinstance(grade, str) and grade in self.grades else None)
        if not holds_object(text):
            grade = stated(text, form)
            if grade is None:
                raise no_verdict(text)
            return Opinion(grade, text.strip())
        value = verdict_object(text, form)
        grade = form.read(value.get("grade"))
        if grade is None:
            raise unfit(f"has no `grade` of {', '.join(self.grades)}", value)
        return Opinion(grade, rationale(value))

    def combine(self, opinions: Sequence[Opinion]) -> Verdict:
        counts = Counter(opinion.value for opinion in opinions)
        most = max(counts.values())
        grade = min((one for one, count in counts.items() if count == most), key=lambda one: (self.grades[one], one))
        return Verdict(
            reward=self.grades[grade],
            components={"agreement": most / len(opinions)},
            reason=_reason(grade, [one for one in opinions if one.value == grade]),
            details={"votes": [one.value for one in opinions]},
        )


class ByRubric(Grading):
    """Criteria that are met or not, each by most votes. Reward: points of the met criteria over the sum of the positive points,
    within 0 and 1 (HealthBench, arXiv:2505.08775)."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self.criteria = criteria
        self.how = (
            "Decide for each numbered criterion whether the answer meets it. A criterion that describes a fault is met where the "
            "answer has the fault. A criterion that is met in part is not met."
        )
        self.form = '{"criteria": [{"number": 1, "reasoning": "...", "met": true or false}, …one for each criterion]}'
        each = _object({"number": {"type": "integer"}, "reasoning": {"type": "string"}, "met": {"type": "boolean"}})
        self.schema = _object({"criteria": {"type": "array", "items": each}})

    def read(self, text: str) -> Opinion:
        value = verdict_object(text, Form("criteria", None, _marks))
        listed = value.get("criteria")
        marks = _marks(listed)
        if not isinstance(listed, list) or marks is None:
            raise unfit("has no list `criteria` that says of each whether it is met, once", value)
        if [number for number, _ in marks] != list(range(1, len(self.criteria) + 1)):
            raise unfit(f"is not about criteria 1 to {len(self.criteria)}", value)
        unmet = [f"{one['number']}: {reason}" for one in listed if not one["met"] and (reason := rationale(one))]
        return Opinion([met for _, met in marks], "; ".join(unmet) or None)

    def combine(self, opinions: Sequence[Opinion]) -> Verdict:
        shares = [fmean(votes) for votes in zip(*(one.value for one in opinions), strict=True)]
        met = [share > 0.5 for share in shares]
        names = [one.name or f"criterion_{number}" for number, one in enumerate(self.criteria, 1)]
        points = sum(one.points for one, is_met in zip(self.criteria, met, strict=True) if is_met)
        possible = sum(one.points for one in self.criteria if one.points > 0)
        return Verdict(
            reward=min(1.0, max(0.0, points / possible)),
            components={name: float(is_met) for name, is_met in zip(names, met, strict=True)}
            | {"agreement": fmean(max(share, 1 - share) for share in shares)},
            reason=_reason(f"{points:g} of {possible:g} points", opinions),
        )


class OnScale(Grading):
    """A number on a scale, the mean over the votes; reward: where it lies between the ends, from 0 to 1."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.how = f"Rate the answer from {low:g} (worst) to {high:g} (best)."
        self.form = f'{{"reasoning": "...", "score": a number from {low:g} to {high:g}}}'
        self.schema = _object({"reasoning": {"type": "string"}, "score": {"type": "number"}})

    def read(self, text: str) -> Opinion:
        value = verdict_object(text, Form("score", _NUMBER, self._score))
        score = self._score(value.get("score"))
        if score is None:
            raise unfit(f"has no `score` from {self.low:g} to {self.high:g}", value)
        return Opinion(score, rationale(value))

    def _score(self, value: Any) -> float | None:
        on_scale = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        return float(value) if on_scale else None

    def combine(self, opinions: Sequence[Opinion]) -> Verdict:
        score = fmean(one.value for one in opinions)
        return Verdict(
            reward=(score - self.low) / (self.high - self.low),
            components={"score": score},
            reason=_reason(f"score {score:g}", opinions),
            details={"votes": [one.value for one in opinions]},
        )


class AsPair(Grading):
    """The better of two answers. Each vote is asked in both orders; where these disagree, it is a tie. Reward: 1 for the agent's
    answer, 0 for the other one, 0.5 for a tie; `inconsistent` is the share of votes whose orders disagreed."""

    def __init__(self) -> None:
        self.how = (
            "Two answers to the same task stand in the frames `first` and `second`. Decide which one is better, or that neither "
            "is. Their order and their length mean nothing."
        )
        self.form = '{"reasoning": "...", "better": "first", "second" or "tie"}'
        better = {"type": "string", "enum": list(get_args(Better))}
        self.schema = _object({"reasoning": {"type": "string"}, "better": better})

    def read(self, text: str) -> Opinion:
        form = Form("better", "|".join(get_args(Better)), lambda better: better if better in get_args(Better) else None)
        value = verdict_object(text, form)
        better = form.read(value.get("better"))
        if better is None:
            raise unfit("has no `better` of first, second, tie", value)
        return Opinion(better, rationale(value))

    @staticmethod
    def vote(agent_first: Opinion, agent_second: Opinion) -> Opinion:
        """One vote out of the two orders: (worth, whether they agree)."""
        worth = {"first": 1.0, "second": 0.0, "tie": 0.5}
        one, other = worth[agent_first.value], 1.0 - worth[agent_second.value]
        return Opinion((one if one == other else 0.5, one == other), agent_first.reasoning)

    def combine(self, opinions: Sequence[Opinion]) -> Verdict:
        reward = fmean(one.value[0] for one in opinions)
        inconsistent = fmean(not one.value[1] for one in opinions)
        said = "better than" if reward > 0.5 else "worse than" if reward < 0.5 else "as good as"
        return Verdict(
            reward=reward,
            components={"inconsistent": inconsistent},
            reason=_reason(f"{said} the baseline", opinions if not inconsistent else ()),
        )


def _marks(listed: Any) -> list[tuple[int, bool]] | None:
    """Which criteria a list says are met, in their order; None for a list that says nothing, or two things of one."""
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return None
    marks = [(one.get("number"), one.get("met")) for one in listed]
    numbers = {number for number, met in marks if type(number) is int and type(met) is bool}
    return sorted(marks) if len(numbers) == len(marks) else None


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _reason(said: str, opinions: Sequence[Opinion]) -> str:
    why = next((one.reasoning for one in opinions if one.reasoning), None)
    return f"{said}: {why}" if why else said
