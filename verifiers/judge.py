"""A judge model grades the final answer: against a reference, by a rubric, on a scale, or against a baseline answer.

    verifier:
      name: judge
      parameters: {grading: reference, votes: 3}
    models:                         # of the run
      policy: {provider: openai, model: candidate}
      judge: {provider: openai, model: grader, sampling: {temperature: 0.3}}

The verdict is what the judge itself says, in JSON at the end of its message. The answer stands in a frame that it cannot close.
A reply without a readable verdict or with two that differ, a judge that declines and one that cannot be reached leave the rollout
without a reward.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from gymflow.verifiers._judge_gradings import AsPair, ByReference, ByRubric, Criterion, Grading, OnScale, Opinion
from gymflow.verifiers._judge_prompts import framed, instructions, neutralised, token_of
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model, model_validator

from gymflow.items import user_text
from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError
from gymflow.verifiers.judging import Judge as JudgeModel
from gymflow.verifiers.judging import Question, judge_of

GradingName = Literal["reference", "rubric", "score", "pair"]


def _text(value: Any) -> Any:
    return "\n".join(map(str, value)) if isinstance(value, list) else value


def _criteria(value: Any) -> Any:
    if isinstance(value, str):
        value = [value]
    return [{"criterion": one} if isinstance(one, str) else one for one in value] if isinstance(value, list) else value


def _earnable(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    if not any(one.points > 0 for one in criteria):
        raise ValueError("a rubric needs a criterion with positive points")
    return criteria


Rubric = Annotated[tuple[Criterion, ...], BeforeValidator(_criteria), AfterValidator(_earnable)]


class JudgeTask(BaseModel):
    """`question` is what was asked, by default the task's own messages. `rubric` is a list of criteria, as text or as
    `{criterion, points, name}`; `baseline` is the answer to compare with. Which of them a row must have depends on the grading."""

    question: str | None = None
    expected_answer: Annotated[str | None, BeforeValidator(_text)] = None
    rubric: Rubric | None = None
    baseline: str | None = None


_REQUIRED: dict[str, tuple[str, Any]] = {
    "reference": ("expected_answer", Annotated[str, BeforeValidator(_text)]),
    "rubric": ("rubric", Rubric),
    "pair": ("baseline", str),
}


class Judge(Verifier[JudgeTask]):
    """Reward: see the grading. An answer without text is worth 0 without asking."""

    needs = frozenset({"response", "judge"})
    includes = ("_judge_gradings.py", "_judge_prompts.py", "_judge_replies.py", "_json.py")

    class Parameters(BaseParameters):
        """`grades` maps the judge's grades to rewards (reference). `rubric` takes the place of the rows'. `scale` has the worst and
        the best score. `votes` asks so often, each time as a sample of its own; votes that cannot be read do not count, and with
        more than half of them there is no verdict. `guide` is further guidance for the judge."""

        grading: GradingName = "reference"
        grades: dict[str, float] = Field(default_factory=lambda: {"correct": 1.0, "incorrect": 0.0}, min_length=2)
        rubric: Rubric | None = None
        scale: tuple[float, float] = (0.0, 1.0)
        votes: int = Field(1, ge=1)
        guide: str | None = None

        @model_validator(mode="after")
        def _rising(self) -> "Judge.Parameters":
            if not self.scale[0] < self.scale[1]:
                raise ValueError("scale: the best score must be above the worst")
            return self

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        grading = self.parameters.grading
        if grading in _REQUIRED and not (grading == "rubric" and self.parameters.rubric):
            field, kind = _REQUIRED[grading]
            fields: dict[str, Any] = {field: (kind, ...)}
            self.__dict__["task_fields"] = create_model("JudgeTask", __base__=JudgeTask, **fields)

    async def verify(self, task: JudgeTask, evidence: Evidence) -> Verdict:
        """Raises JudgeError, JudgeRefused or JudgeUnparseable where there is no verdict."""
        answer = evidence.final_text
        if not answer.strip():
            return Verdict(reward=0.0, reason="empty_final_answer")
        judge = judge_of(evidence)
        grading = self._grading(task)
        material = {
            "question": task.question or user_text(evidence.input),
            "expected_answer": task.expected_answer,
            "criteria": "\n".join(f"{n}. {one.criterion}" for n, one in enumerate(self._criteria(task), 1)) or None,
            "answer": neutralised(answer),
        }
        if not isinstance(grading, AsPair):
            question = self._question(grading, material)
            votes = await asyncio.gather(
                *(self._vote(judge, grading, question, sample) for sample in range(self.parameters.votes)),
                return_exceptions=True,
            )
        else:
            agents, baseline = material.pop("answer"), neutralised(task.baseline or "")
            orders = [
                self._question(grading, material | {"first": first, "second": second})
                for first, second in ((agents, baseline), (baseline, agents))
            ]
            votes = await asyncio.gather(
                *(self._vote_on_pair(judge, grading, orders, sample) for sample in range(self.parameters.votes)),
                return_exceptions=True,
            )
        return _verdict(grading, votes)

    def _grading(self, task: JudgeTask) -> Grading:
        if self.parameters.grading == "reference":
            return ByReference(self.parameters.grades)
        if self.parameters.grading == "rubric":
            return ByRubric(self._criteria(task))
        return AsPair() if self.parameters.grading == "pair" else OnScale(*self.parameters.scale)

    def _criteria(self, task: JudgeTask) -> Sequence[Criterion]:
        return self.parameters.rubric or task.rubric or ()

    def _question(self, grading: Grading, material: dict[str, str | None]) -> Question:
        shown = {name: text for name, text in material.items() if text}
        token = token_of(shown)
        return Question(
            instructions=instructions(token, grading.how, self.parameters.guide, grading.form),
            text="\n\n".join(framed(token, name, text) for name, text in shown.items()),
            schema=grading.schema,
        )

    async def _vote(self, judge: JudgeModel, grading: Grading, question: Question, sample: int) -> Opinion:
        return await judge.ask(replace(question, sample=sample), grading.read)

    async def _vote_on_pair(
        self, judge: JudgeModel, grading: AsPair, orders: Sequence[Question], sample: int
    ) -> Opinion:
        return grading.vote(*await asyncio.gather(*(self._vote(judge, grading, one, sample) for one in orders)))


def _verdict(grading: Grading, votes: Sequence[Opinion | BaseException]) -> Verdict:
    opinions = [vote for vote in votes if isinstance(vote, Opinion)]
    faults = [vote for vote in votes if isinstance(vote, BaseException)]
    if unexpected := next((fault for fault in faults if not isinstance(fault, VerifierError)), None):
        raise unexpected
    if len(faults) * 2 > len(votes) or not opinions:
        raise faults[0]
    verdict: Verdict = grading.combine(opinions)
    without = {"without_opinion": [str(fault) for fault in faults]} if faults else {}
    return verdict.model_copy(update={"details": verdict.details | without})
