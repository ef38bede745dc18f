r"""Where a final text states its answer: a box, an answer phrase, or nothing but the answer.

    >>> last_box(r"First \boxed{1}, then \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    >>> phrased("Let me see.\n**Final answer:** 46.")
    '46'

All scans are linear in the text, whatever it holds.
"""

import re
from typing import NamedTuple


class Box(NamedTuple):
    """The content of a `\\boxed{...}` and where the whole command stands."""

    content: str
    start: int
    end: int


_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)

_JOINED = re.compile(
    r"[\s$*.,;:()\\]*(?:(?:or|and|either|also|maybe|perhaps|possibly|alternatively|else|oder|und|ou|et|y|o)[\s$*.,;:()\\]*){0,3}"
)

_PHRASE = re.compile(
    r"(?:\banswers?\b(?:\s+(?:to|of|for)\s[^.:\n]{0,80}?)?|答案|答え|정답|\bantwort\b|\brespuesta\b|\br[ée]ponse\b"
    r"|\brisposta\b|\bresposta\b|\bответ\b)"
    r"[ \t*_\"')]{0,8}(?:[:：=]|\bis\b|\bare\b|\bist\b|\bes\b|\best\b|是|为|(?=\$|\\\(|\\\[))[ \t*_:：]{0,8}",
    re.IGNORECASE,
)

_CLAUSE = re.compile(
    r"(?:[.!?。](?=\s|$)|\s(?:because|since|which|where|so|as|given)\b|,\s(?=[a-z]{2,}\s)).*$", re.DOTALL
)


def boxes(text: str) -> list[Box]:
    """The outermost complete boxes in order; a box that never closes is none."""
    starts = [position for command in ("\\boxed", "\\fbox") if (position := text.find(command)) >= 0]
    if not starts:
        return []
    found: list[Box] = []
    opened: list[tuple[bool, int, int]] = []
    for token in _BRACES.finditer(text, min(starts)):
        mark = token.group()
        if mark == "{" or (len(mark) > 2 and mark[0] == "\\"):
            opened.append((len(mark) > 1, token.start(), token.end()))
        elif mark == "}" and opened:
            is_box, start, inside = opened.pop()
            if is_box:
                while found and found[-1].start > start:
                    found.pop()
                found.append(Box(text[inside : token.start()].strip(), start, token.end()))
    return found


def last_box(text: str) -> str | None:
    """Content of the last box."""
    found = boxes(text)
    return found[-1].content if found else None


def stated_boxes(text: str) -> list[Box]:
    r"""The last box, with the boxes before it that are joined to it: `\boxed{1} or \boxed{2}` states two values."""
    found = boxes(text)
    if len(found) < 2:
        return found
    stated = found[-1:]
    for earlier, later in zip(found[-2::-1], found[:0:-1], strict=True):
        between = text[earlier.end : later.start]
        if len(between) > 60 or not _JOINED.fullmatch(between):
            break
        stated.insert(0, earlier)
    return stated


def phrased(text: str) -> str | None:
    """What follows the last "answer is" or "Answer:", up to the end of its line; the next line where that is empty."""
    phrase = None
    for phrase in _PHRASE.finditer(text):  # noqa: B007 — the last one; thousands of them kept would cost a collection
        pass
    if phrase is None:
        return None
    rest = text[phrase.end() :].lstrip()
    for opening, closing in (("$$", "$$"), ("\\[", "\\]")):
        if rest.startswith(opening) and (end := rest.find(closing, 2)) > 0:
            return rest[2:end].strip() or None
    line = rest.partition("\n")[0].strip()
    return bare(line) or None


def last_line(text: str) -> str | None:
    """The last line that is not empty."""
    lines = text.rstrip().rpartition("\n")
    return lines[2].strip() or None


def bare(text: str) -> str:
    """Without Markdown emphasis, quotes around it and the full stop behind it."""
    text = text.strip().strip("*_`").strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return text[:-1].rstrip("*_` ") if text[-1:] in (".", "。") else text


def first_clause(text: str) -> str:
    """The part before the sentence goes on: "25, because it is odd." -> "25"."""
    return _CLAUSE.sub("", text)
