r"""Mathematical equivalence of the final answer and the expected one.

    >>> extract(r"So it is \boxed{\frac{1}{2}}.", "answer")
    '\\frac{1}{2}'

An answer is the content of the last box, or what follows the last "answer is" / "Answer:", or a text that is nothing but an
answer; boxes joined by "or", "and" or a comma are one answer of several values. Plain numbers, fractions and roots are decided
at once and exactly; the rest by computer algebra in a process that can be killed.

Policies: units are dropped unless both are known and differ; 10% equals 0.1 and 10; a decimal that is right in all its digits,
six at least, equals the exact value; expressions are equal if they agree wherever both are real; the elements of `{}` and of a
bare list have no order, those of `()` and `[]` have one; an answer beyond all bounds (9^9^9^9, hundreds of brackets) is wrong.
"""

import re
from functools import cached_property
from typing import Annotated, Literal

from gymflow.verifiers._answers import first_clause, last_box, phrased, stated_boxes
from gymflow.verifiers._arithmetic import TooLarge
from gymflow.verifiers._latex import normalize
from gymflow.verifiers._numbers import agree, read
from gymflow.verifiers._units import split_units
from gymflow.verifiers._workers import WorkerPool
from pydantic import BaseModel, BeforeValidator, Field

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier

Extraction = Literal["boxed", "answer", "lenient"]

MAX_LENGTH = 2000
"""Longest answer that is compared, in characters, unless the expected one is longer."""
MAX_NESTING = 40

_INLINE = re.compile(r"\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_LEAD = re.compile(
    r"(?:equal to|approximately|about|roughly|simply|just|therefore|thus|:|=|≈|\\approx)\s*", re.IGNORECASE
)
_WORD = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2,}")
_LAST_NUMBER = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?(?:\s?\\?%)?|[-−]?\.\d+|[½⅓⅔¼¾]")
_HUGE_EXPONENT = re.compile(r"\^\s*\{?\s*-?\d{6,}")


def _text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class MathTask(BaseModel):
    """`expected_answer` is LaTeX or plain text; a number in the row stands for its digits."""

    expected_answer: Annotated[str, BeforeValidator(_text), Field(min_length=1)]

    @cached_property
    def gold(self) -> str:
        """The expected answer in one spelling."""
        gold: str = normalize(last_box(self.expected_answer) or self.expected_answer)
        return gold


class Math(Verifier[MathTask]):
    """Reward 1.0 for an equivalent answer, 0.0 for another or none; an undecided comparison is an error, never 0.0."""

    extracts = True
    includes = (
        "_algebra.py",
        "_answers.py",
        "_arithmetic.py",
        "_latex.py",
        "_numbers.py",
        "_structure.py",
        "_symbolic.py",
        "_units.py",
        "_worker_main.py",
        "_workers.py",
    )
    distributions = ("math-verify", "latex2sympy2-extended", "sympy")

    class Parameters(BaseParameters):
        """`boxed`: only a box counts. `answer`: a box, an answer phrase, or a bare answer. `lenient`: else the last number."""

        extraction: Extraction = "answer"
        timeout_s: float = Field(10.0, gt=0, description="Longest that one comparison may take, in seconds.")

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        self._workers = WorkerPool("gymflow.verifiers._symbolic:compare", deadline_s=self.parameters.timeout_s)

    def lenient(self) -> BaseModel | None:
        """Without the box and the phrase."""
        if self.parameters.extraction == "lenient":
            return None
        lenient: BaseModel = self.parameters.model_copy(update={"extraction": "lenient"})
        return lenient

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()

    async def verify(self, task: MathTask, evidence: Evidence) -> Verdict:
        """Raises VerifierTimeout where the comparison does not end in time."""
        answer = extract(evidence.final_text, self.parameters.extraction)
        if answer is None:
            return Verdict(reward=0.0, reason="no answer found in the final message")
        equal, reason = await self._equal(task, answer)
        return Verdict(reward=float(equal), extracted_answer=answer[:MAX_LENGTH], reason=reason)

    async def _equal(self, task: MathTask, answer: str) -> tuple[bool, str | None]:
        if len(answer) > max(MAX_LENGTH, 2 * len(task.expected_answer)):
            return False, "the answer is too long to be one"
        split = split_units(task.gold, normalize(answer))
        if split.differ:
            return False, split.reason
        try:
            equal = agree(split.gold, split.answer)
        except TooLarge as error:
            return False, f"the answer is {error}"
        if equal is None:
            if _beyond_bounds(split.answer) and not _beyond_bounds(split.gold):
                return False, "the answer is beyond all bounds"
            result = await self._workers.call({"gold": task.gold, "answer": answer})
            return result["equal"], result["reason"]
        return equal, None if equal else "not equal to the expected answer"


def extract(text: str, extraction: Extraction) -> str | None:
    """The stated answer, as written; None where the text states none."""
    if boxed := stated_boxes(text):
        return ", ".join({normalize(box.content): box.content for box in boxed}.values())
    if extraction == "boxed":
        return None
    phrase = phrased(text)
    if phrase is not None:
        return _stated(phrase)
    stripped = text.strip()
    if _is_bare(stripped):
        return stripped
    if extraction == "lenient":
        numbers = _LAST_NUMBER.findall(text)
        return numbers[-1] if numbers else None
    return None


def _stated(phrase: str) -> str:
    segments: list[str] = [next(filter(None, groups)) for groups in _INLINE.findall(phrase)]
    if len(segments) == 1:
        return segments[0].strip()
    lead = _LEAD.match(phrase)
    clause: str = first_clause(phrase[lead.end() :] if lead else phrase)
    return clause.strip()


def _is_bare(text: str) -> bool:
    """Whether a text is an answer and nothing else: one line, at most two words beside the mathematics."""
    return 0 < len(text) <= 300 and "\n" not in text and len(_WORD.findall(_INLINE.sub("", text))) <= 2


def _beyond_bounds(text: str) -> bool:
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING or _HUGE_EXPONENT.search(text):
        return True
    try:
        read(text)
    except TooLarge:
        return True
    return False
