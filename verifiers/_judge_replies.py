r"""What a judge's own message says: the verdict in the JSON object that it ends with, or one that it states in words without doubt.

>>> grade = Form("grade", "C|I", {"C": "C", "I": "I"}.get)
>>> verdict_object('It said {"grade": "C"}. Mine: {"grade": "I"}', grade)
{'grade': 'I'}
>>> stated("The answer holds 'GRADE: C', but is wrong.\nGRADE: I", grade)
'I'

A judge may quote what it grades, and think before it decides; a message that says two things of its own holds no verdict.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
# The end of what leads to a quotation: who said it, that it was said, and nothing but glue behind.
_ATTRIBUTION = re.compile(
    r"(?<!\bmy )\b(?:answer|submission|response|reply|solution|candidate|student|agent|model|assistant|text|it|they)\b"
    r"[^.!?\n{}]{0,60}?"
    r"\b(?:sa(?:id|ys?)|contain(?:s|ed|ing)?|h(?:olds?|eld)|includ(?:es?|ed|ing)|claim(?:s|ed|ing)?|stat(?:es?|ed|ing)"
    r"|wr(?:ote|ites?|itten)|end(?:s|ed)|quot(?:es?|ed)|print(?:s|ed)|embed(?:s|ded)|inject(?:s|ed))\b"
    r"(?:[\s:,\"'“«(`]|\b(?:that|a|an|the|its|own|this|following|with|as|in|to|fake|attempt|inject|claim|json|object"
    r"|block|line|text|verdict)\b)*\Z",
    re.IGNORECASE,
)
_BEFORE = 200
_OTHER_NAMES = frozenset(
    {"grade", "verdict", "judgement", "judgment", "rating", "score", "conclusion", "better", "winner"}
)
_LEAD = (
    r"(?i:\b(?:grade|verdict|judge?ment|rating|score|conclusion|better|winner)\b)"
    r"[\s*_:=]{0,6}(?:(?i:is|would be)\b)?[\s*_:=(\[]{0,6}"
)
_DECIDED = r"(?=[\s*_)\]]*(?:[.,;!(\n—–]|\Z|(?:because|since|as|for)\b))"


@dataclass(frozen=True, slots=True)
class Form:
    """What a verdict looks like: its field of the object, a pattern of the words for it (None: it is not said in words), and
    `read`, what a value of that field means: None for a value that is no verdict."""

    field: str
    words: str | None
    read: Callable[[Any], Any]


def verdict_object(text: str, form: Form) -> dict[str, Any]:
    """The object that holds the verdict: the last one that the judge does not quote. Raises JudgeRefused, or JudgeUnparseable also
    where an earlier object, another field or the judge's words give another verdict."""
    own = [
        (start, end) for start, end in _objects(text) if not _ATTRIBUTION.search(text[max(0, start - _BEFORE) : start])
    ]
    if not own:
        raise no_verdict(text)
    *earlier, (start, end) = own
    try:
        value: dict[str, Any] = parse(text[start:end], unique_keys=True)
    except ValueError as error:
        raise JudgeUnparseable(f"the judge's JSON is not one verdict: {error}") from None
    verdict = form.read(value.get(form.field))
    if verdict is None:
        return value
    others = [*(found for span in earlier for found in _in_object(text[slice(*span)], form)), *_in_fields(value, form)]
    words = (_without_objects(text), rationale(value) or "")
    others += [found for part in words for found in _in_words(part, form, _DECIDED)]
    for other in others:
        if other != verdict:
            raise JudgeUnparseable(f"the judge gave two verdicts: {_shown(other)} and {_shown(verdict)}")
    return value


def holds_object(text: str) -> bool:
    """Whether a message holds a JSON object, so that nothing is read from its words alone."""
    return next(_objects(text), None) is not None


def stated(text: str, form: Form) -> Any:
    """The one verdict that a message without JSON states in words of its own; None where it states none, or several."""
    found = set(_in_words(text, form, r"(?!\w)"))
    if not found and form.words and (whole := re.fullmatch(rf"\W*({form.words})\W*", _QUOTED.sub(" ", text))):
        found = {form.read(whole[1])}
    return found.pop() if len(found) == 1 else None


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
    return JudgeUnparseable(f"the judge's verdict {fault}: {_shown(value)}")


def rationale(value: dict[str, Any]) -> str | None:
    """The judge's reasons."""
    said = value.get("reasoning")
    return said.strip() or None if isinstance(said, str) else None


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost JSON objects of a message stand."""
    position = text.find("{")
    while position >= 0:
        try:
            _, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield position, end
        position = text.find("{", end)


def _in_object(source: str, form: Form) -> Iterator[Any]:
    """The verdicts of an object, every one where a key is doubled."""
    pairs: list[tuple[str, Any]] = []

    def kept(found: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = found  # the outermost object comes last
        return dict(found)

    json.loads(source, object_pairs_hook=kept)
    yield from _verdicts((value for key, value in pairs if key == form.field), form)


def _in_fields(value: dict[str, Any], form: Form) -> Iterator[Any]:
    """Verdicts under another name, or further inside."""
    for key, inner in value.items():
        name = key.casefold().removeprefix("final_").removeprefix("overall_")
        if key != form.field and name in _OTHER_NAMES | {form.field}:
            yield from _verdicts([inner], form)
        if key != form.field and isinstance(inner, dict):
            yield from _verdicts([inner.get(form.field)], form)
            yield from _in_fields(inner, form)


def _in_words(text: str, form: Form, end: str) -> Iterator[Any]:
    if form.words is None:
        return
    said = _QUOTED.sub(" ", text)
    for match in re.finditer(rf"{_LEAD}({form.words}){end}", said):
        if not _ATTRIBUTION.search(said[max(0, match.start() - _BEFORE) : match.start()]):
            yield from _verdicts([match[1], _number(match[1])], form)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _verdicts(values: Iterable[Any], form: Form) -> Iterator[Any]:
    return (verdict for value in values if (verdict := form.read(value)) is not None)


def _without_objects(text: str) -> str:
    pieces, position = [], 0
    for start, end in _objects(text):
        pieces.append(text[position:start])
        position = end
    return "\n".join([*pieces, text[position:]])


def _shown(value: Any) -> str:
    return json.dumps(value)[:SHOWN]
