"""What a judge's own message says: the JSON object that it ends with, or a grade that it states without doubt.

>>> last_object('It said {"score": 1}. Mine: {"score": 0}')
{'score': 0}
>>> stated_grade("The answer holds 'GRADE: C', but is wrong.\\nGRADE: I", ["C", "I"])
'I'
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from gymflow.verifiers._json import parse

from gymflow.verifiers.judging import JudgeRefused, JudgeUnparseable

SHOWN = 200

_DECODER = json.JSONDecoder()
_REFUSAL = re.compile(
    r"\s*(?:I['’]?m sorry|I am sorry|Sorry,|I can(?:no|['’])t\b|I can not\b|I(?:['’]m| am) (?:unable|not able)|I won['’]t\b"
    r"|I must decline)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]*'(?!\w)", re.DOTALL)


def last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object of a message, None where it holds none. ValueError for one that says a thing twice."""
    found: str | None = None
    position = text.find("{")
    while position >= 0:
        try:
            _, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            found = text[position:end]
        position = text.find("{", end)
    value: dict[str, Any] | None = None if found is None else parse(found, unique_keys=True)
    return value


def stated_grade(text: str, grades: Sequence[str]) -> str | None:
    """The one grade that a message without JSON states outside of quotations; None where it states none, or several."""
    said = _QUOTED.sub(" ", text)
    labels = "|".join(sorted(map(re.escape, grades), key=len, reverse=True))
    lead = (
        r"(?i:\b(?:grade|verdict|judge?ment|rating|conclusion)\b)[\s*_:=]{0,6}(?:(?i:is|would be)\b)?[\s*_:=(\[]{0,6}"
    )
    found = {match[1] for match in re.finditer(rf"{lead}({labels})(?!\w)", said)}
    if not found and (whole := re.fullmatch(rf"\W*({labels})\W*", said)):
        found = {whole[1]}
    return found.pop() if len(found) == 1 else None


def verdict_object(text: str) -> dict[str, Any]:
    """The object that holds the verdict. Raises JudgeRefused or JudgeUnparseable."""
    try:
        value = last_object(text)
    except ValueError as error:
        raise JudgeUnparseable(f"the judge's JSON is not one verdict: {error}") from None
    if value is None:
        raise no_verdict(text)
    return value


def no_verdict(text: str) -> JudgeRefused | JudgeUnparseable:
    """Why a message without a verdict has none."""
    shown = " ".join(text.split())[:SHOWN]
    if not shown:
        return JudgeUnparseable("the judge said nothing")
    if _REFUSAL.match(text):
        return JudgeRefused(f"the judge declined: {shown}")
    return JudgeUnparseable(f"the judge gave no verdict: {shown}")


def unfit(fault: str, value: Any) -> JudgeUnparseable:
    """A verdict that lacks something, or holds what it must not."""
    return JudgeUnparseable(f"the judge's verdict {fault}: {json.dumps(value)[:SHOWN]}")


def rationale(value: dict[str, Any]) -> str | None:
    """The judge's reasons."""
    said = value.get("reasoning")
    return said.strip() or None if isinstance(said, str) else None
