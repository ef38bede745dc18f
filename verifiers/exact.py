"""The final text against an expected string.

>>> matches("The Netherlands", "the  netherlands.", "normalized")
True
"""

import re
import unicodedata
from typing import Annotated, Literal

from gymflow.verifiers._answers import bare, last_box, last_line, phrased
from gymflow.verifiers._patterns import check
from gymflow.verifiers._workers import WorkerPool
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier

Extraction = Literal["full_response", "final_answer", "boxed", "last_line", "any"]
Match = Literal["exact", "stripped", "normalized", "contains", "regex"]

PATTERN_TIMEOUT_S = 5.0

_TEXT_WRAP = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf)\{(.*)\}", re.DOTALL)


def _texts(value: object) -> object:
    values = value if isinstance(value, list) else [value]
    return [str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one for one in values]


class ExactTask(BaseModel):
    """`expected_answer` is one accepted answer or a list of them; `extraction_mode` and `case_sensitive` as in NeMo Gym rows."""

    expected_answer: Annotated[list[str], BeforeValidator(_texts), Field(min_length=1)]
    extraction_mode: Extraction | None = None
    case_sensitive: bool | None = None


class Exact(Verifier[ExactTask]):
    """Reward 1.0 for an accepted answer, else 0.0."""

    extracts = True
    includes = ("_answers.py", "_patterns.py", "_worker_main.py", "_workers.py")

    class Parameters(BaseParameters):
        """Each wins over the row's own field.

        Extraction: the full response (default), what follows "Answer:" (else a box), the last box, the last line, any of these;
        or `pattern`, of whose last match group 1 is the answer.
        Match: `exact`, `stripped` (default), `normalized` (case, width, white space, quotes and the full stop do not count),
        `contains` (normalized, as whole words), `regex` (the expected answer is an expression that matches the whole answer).
        """

        extraction: Extraction | None = None
        pattern: Annotated[str, AfterValidator(check)] | None = None
        match: Match | None = None

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        self._searches = WorkerPool("gymflow.verifiers._patterns:last_match", deadline_s=PATTERN_TIMEOUT_S, size=1)
        self._matches = WorkerPool("gymflow.verifiers._patterns:full_match", deadline_s=PATTERN_TIMEOUT_S, size=1)

    def lenient(self) -> BaseModel | None:
        """Wherever the answer is stated, whatever its case; an expression stays one."""
        wider = {"extraction": "any", "pattern": None}
        if self.parameters.match in (None, "exact", "stripped"):
            wider["match"] = "normalized"
        lenient = self.parameters.model_copy(update=wider)
        return None if lenient == self.parameters else lenient

    async def close(self) -> None:
        """End the processes that run patterns."""
        await self._searches.close()
        await self._matches.close()

    async def verify(self, task: ExactTask, evidence: Evidence) -> Verdict:
        """Raises VerifierTimeout where a pattern does not end in time."""
        match = self._match(task)
        answers = await self._answers(task, evidence.final_text)
        if not answers:
            return Verdict(reward=0.0, reason="no answer found in the final message")
        for answer in answers:
            for expected in task.expected_answer:
                if await self._accepts(expected, answer, match):
                    return Verdict(reward=1.0, extracted_answer=answer)
        return Verdict(reward=0.0, extracted_answer=answers[0], reason=f"not an accepted answer ({match} comparison)")

    def _match(self, task: ExactTask) -> Match:
        if self.parameters.match is not None or task.case_sensitive is None:
            return self.parameters.match or "stripped"
        return "stripped" if task.case_sensitive else "normalized"

    async def _answers(self, task: ExactTask, text: str) -> list[str]:
        if self.parameters.pattern is not None:
            found = await self._searches.call({"pattern": self.parameters.pattern, "text": text})
            return [] if found is None else [found]
        return extracted(text, self.parameters.extraction or task.extraction_mode or "full_response")

    async def _accepts(self, expected: str, answer: str, match: Match) -> bool:
        if match != "regex":
            return matches(expected, answer, match)
        return bool(await self._matches.call({"pattern": expected, "text": answer.strip(), "ignore_case": False}))


def extracted(text: str, extraction: Extraction) -> list[str]:
    """The answers that a text states, best first: at most one, but for `any`."""
    if not text.strip():
        return []
    if extraction == "full_response":
        return [text]
    boxed, stated, last = last_box(text), phrased(text), last_line(text)
    chosen = {
        "boxed": [boxed],
        "final_answer": [stated if stated is not None else boxed],
        "last_line": [last],
        "any": [boxed, stated, last, text],
    }[extraction]
    return [_unwrapped(answer) for answer in chosen if answer is not None]


def matches(expected: str, answer: str, match: Match) -> bool:
    """Whether the answer is the expected one; see `Exact.Parameters`."""
    if match == "exact":
        return expected == answer
    if match == "stripped":
        return expected.strip() == answer.strip()
    wanted, said = normalized(expected), normalized(answer)
    if match == "contains":
        return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", said) is not None
    return wanted == said


def normalized(text: str) -> str:
    """Compatibility forms, case folded, single spaces, without quotes around and punctuation behind."""
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return bare(text).rstrip(".!?") or text


def _unwrapped(text: str) -> str:
    while match := _TEXT_WRAP.fullmatch(text.strip()):
        text = match[1]
    return text.strip()
