"""How a verifier asks the run's judge model.

    async def verify(self, task: AnswerTask, evidence: Evidence) -> Verdict:
        question = Question(instructions="You grade an answer.", text=prompt, schema=SCHEMA)
        grade = await judge_of(evidence).ask(question, read_grade)

A verifier that asks declares `needs = frozenset({"response", "judge"})`. The runtime answers the same question once: what a
judge model said is kept in the store, and every call is stored with the verdict that rests on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gymflow.contracts.outcome import VerdictFailure
from gymflow.verifiers import Evidence, VerifierError

T = TypeVar("T")


class JudgeError(VerifierError):
    """The judge model could not be asked: recorded as `judge_error`."""

    failure = VerdictFailure.JUDGE_ERROR


class JudgeUnparseable(VerifierError):
    """What the judge said holds no verdict: recorded as `judge_unparseable`, never as a reward of zero."""

    failure = VerdictFailure.JUDGE_UNPARSEABLE


class JudgeRefused(VerifierError):
    """The judge declined, or its endpoint filtered what it said: recorded as `judge_refused`."""

    failure = VerdictFailure.JUDGE_REFUSED


@dataclass(frozen=True, slots=True)
class Question:
    """What the judge is asked. `schema` is the JSON Schema of its answer, asked for where the endpoint can enforce one; equal
    questions of different `sample` are asked separately."""

    instructions: str
    text: str
    schema: dict[str, Any]
    sample: int = 0


class Judge(Protocol):
    """The judge model, for one verdict."""

    async def ask(self, question: Question, read: Callable[[str], T]) -> T:
        """What `read` makes of the text of the answer. An answer for which `read` raises JudgeUnparseable is not kept, so that
        asking again asks the model. Raises JudgeError, JudgeRefused, or what `read` raises."""
        ...


def judge_of(evidence: Evidence) -> Judge:
    """The judge that comes with the evidence. Raises JudgeError where the verifier was called without one."""
    if evidence.judge is None:
        raise JudgeError("there is no judge model at hand; name one under `models: judge:`")
    return evidence.judge
