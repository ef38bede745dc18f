r"""Multiple choice: which option did the answer settle on?

    >>> committed("It is not A. The answer: C", {"A": "", "B": "", "C": "", "D": ""}).letter
    'C'

A choice is what the text commits to last: a box, an answer tag, "the answer is C", "(C) is correct", "I choose C", a last line
that is a letter or restates exactly one option. A letter in prose is none, nor is a negated one. Two options at once, or a letter
that no option has, are no answer; the reason says which.

The modes of NeMo Gym rows (`grading_mode`, `template_metadata.output_regex`) are read as its documentation has them.
"""

import re
from functools import cached_property
from string import ascii_uppercase
from typing import Annotated, Literal

from gymflow.verifiers._answers import boxes
from gymflow.verifiers._choices import NO_CHOICE, Choice, committed, normalized
from gymflow.verifiers._patterns import check
from gymflow.verifiers._workers import WorkerPool
from pydantic import AfterValidator, BaseModel, Field, model_validator

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier

Mode = Literal["anchored", "lenient", "strict_single_letter_boxed", "lenient_boxed", "lenient_answer_colon"]

PATTERN_TIMEOUT_S = 5.0

_COLON = re.compile(r"answer\s*[:：]\s*(.+)", re.IGNORECASE)
_STRICT_BOX = re.compile(r"[^A-Za-z]*([A-Z])(?:[^A-Za-z]*|\s*[:).\-].*)", re.DOTALL)
_TEXT_WRAP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mathit|textit)\{(.*)\}", re.DOTALL)


class TemplateMetadata(BaseModel):
    """How the prompt asked for the answer."""

    output_regex: Annotated[str, AfterValidator(check)] | None = Field(
        None, description="Group 1 of its last match is the letter; case is ignored."
    )


class McqaTask(BaseModel):
    """`options` are texts in order (A, B, …) or `{letter: text}` entries; `expected_answer` is a letter."""

    options: list[dict[str, str]] | list[str] = Field(min_length=2, max_length=26)
    expected_answer: str
    grading_mode: Mode | None = None
    template_metadata: TemplateMetadata | None = None

    @cached_property
    def texts(self) -> dict[str, str]:
        """Letter -> option text."""
        pairs: dict[str, str] = {}
        options: list[dict[str, str] | str] = [*self.options]
        for letter, option in zip(ascii_uppercase, options, strict=False):
            if isinstance(option, str):
                pairs[letter] = option
            else:
                pairs.update((key.strip().upper(), text) for key, text in option.items())
        return pairs

    @cached_property
    def gold(self) -> str:
        """The expected letter in upper case."""
        return self.expected_answer.strip().upper()

    @model_validator(mode="after")
    def _consistent(self) -> "McqaTask":
        if wrong := [letter for letter in self.texts if len(letter) != 1 or letter not in ascii_uppercase]:
            raise ValueError(f"an option's label must be a single letter, not {wrong[0]!r}")
        if len(self.texts) < len(self.options):
            raise ValueError("two options have the same letter")
        if self.gold not in self.texts:
            raise ValueError(f"expected_answer {self.expected_answer!r} is none of the options {', '.join(self.texts)}")
        return self


class Mcqa(Verifier[McqaTask]):
    """Reward 1.0 when the option that the text settles on is the expected one, else 0.0."""

    extracts = True
    includes = ("_answers.py", "_choices.py", "_patterns.py", "_worker_main.py", "_workers.py")

    class Parameters(BaseParameters):
        """`mode` wins over the row's own; without either it is `anchored`. `lenient`: else any letter that stands alone."""

        mode: Mode | None = None

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        self._patterns = WorkerPool("gymflow.verifiers._patterns:last_match", deadline_s=PATTERN_TIMEOUT_S, size=1)

    def lenient(self) -> BaseModel | None:
        """Any wording, whatever form the row asks for."""
        return None if self.parameters.mode == "lenient" else self.parameters.model_copy(update={"mode": "lenient"})

    async def close(self) -> None:
        """End the process that runs the rows' patterns."""
        await self._patterns.close()

    async def verify(self, task: McqaTask, evidence: Evidence) -> Verdict:
        """Raises VerifierTimeout where a row's own pattern does not end in time."""
        text = evidence.final_text
        if self.parameters.mode is None and task.template_metadata and (pattern := task.template_metadata.output_regex):
            letter = await self._patterns.call({"pattern": pattern, "text": text})
            found = _allowed(letter, task.texts)
        else:
            found = _MODES[self.parameters.mode or task.grading_mode or "anchored"](text, task.texts)
        if found.letter is None:
            return Verdict(reward=0.0, reason=found.reason)
        if found.letter == task.gold:
            return Verdict(reward=1.0, extracted_answer=found.letter)
        return Verdict(reward=0.0, extracted_answer=found.letter, reason="another option than the expected one")


def _allowed(letter: str | None, options: dict[str, str]) -> Choice:
    if letter is None:
        return NO_CHOICE
    letter = letter.strip().upper()
    return Choice(letter) if letter in options else Choice(None, f"{letter[:20]!r} is none of the options")


def _strict_boxed(text: str, options: dict[str, str]) -> Choice:
    found = boxes(text)
    match = _STRICT_BOX.fullmatch(_unwrapped(found[-1].content)) if found else None
    return _allowed(match[1], options) if match else Choice(None, "no single letter in the last box")


def _lenient_boxed(text: str, options: dict[str, str]) -> Choice:
    strict = _strict_boxed(text, options)
    found = boxes(text)
    if strict.letter is not None or not found:
        return strict
    said = normalized(_unwrapped(found[-1].content))
    named = [letter for letter, option in options.items() if option.strip() and normalized(option) in said]
    return Choice(named[0]) if len(named) == 1 else Choice(None, "the last box names no option, or several")


def _after_colon(text: str, options: dict[str, str]) -> Choice:
    lines = _COLON.findall(text)
    if not lines:
        return Choice(None, 'no "Answer:"')
    said = _unwrapped(lines[-1].strip())
    if len(said) == 1 and said.isalpha():
        return _allowed(said, options)
    named = [letter for letter, option in options.items() if normalized(option) == normalized(said)]
    return Choice(named[0]) if named else Choice(None, '"Answer:" is not followed by an option')


def _unwrapped(text: str) -> str:
    while match := _TEXT_WRAP.fullmatch(text.strip()):
        text = match[1]
    return text.strip()


_MODES = {
    "anchored": committed,
    "lenient": lambda text, options: committed(text, options, lenient=True),
    "strict_single_letter_boxed": _strict_boxed,
    "lenient_boxed": _lenient_boxed,
    "lenient_answer_colon": _after_colon,
}
