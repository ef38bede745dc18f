r"""Where a text commits to one of its options, and to which.

>>> committed("Not A. The answer is (C).", {"A": "one", "B": "two", "C": "three"})
Choice(letter='C', reason=None)
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from gymflow.verifiers._answers import stated_boxes


class Choice(NamedTuple):
    """The letter of an option, or why there is none."""

    letter: str | None
    reason: str | None = None


NO_CHOICE = Choice(None, "no option found in the final message")

_FULLWIDTH = str.maketrans({code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3010: "(", 0x3011: ")"})

_WORDS = (
    *(
        (word, "name")
        for word in ("answer", "choice", "option", "selection", "antwort", "respuesta", "risposta", "resposta")
    ),
    *((word, "pick") for word in ("choose", "chose", "select", "pick", "go with", "going with", "opt for")),
    *((word, "judgement") for word in (" correct", " right", " best", " answer")),
)
_ALL_WORDS = (
    *_WORDS,
    *((word, "name") for word in ("réponse", "ответ", "答案", "答え", "정답", "故选", "应选", "选择")),
)
_TAIL = 400
MAX_OPTION_LENGTH = 1000
_OCCURRENCES = 4
"""How many of each are looked at, from the end."""

_PHRASE = re.compile(
    r"(?:answer|antwort|respuesta|r[ée]ponse|risposta|resposta|ответ|choice|selection|option(?: selected| chosen)?)"
    r"(?: to (?:the|this) question| here| letter)?[\s*_\"')]{0,4}"
    r"(?:[:=]|(?:is|should be|would be|must be|will be|ist|es|est)\b)[\s:]{0,4}"
    r"|(?:choose|chose|select|pick|go(?:ing)? with|opt for)\b[\s:]{0,4}"
    r"|(?:答案|选项|答え|정답|故选|应选|选择)\s{0,4}(?:[:是为は은选]\s{0,4}){0,2}"
)
_QUALIFIED = re.compile(
    r"(?:correct|best|right|final|my|chosen|selected|appropriate|likely|accurate|valid)[\s*_]{1,4}$"
)
_DOUBTED = re.compile(
    r"(?:\b(?:if|whether|suppose|assume|assuming|wrong|incorrect|another|possible|tempting|not|never|why|initial|first)"
    r"|n't)(?: (?:the|an?|that|my|correct|final|right|best))*[\s*_]{1,4}$"
)
_VERDICT = re.compile(
    r"(?:(?:option|choice|answer|statement)\s{1,3})?(?P<open>[(\[*]{0,3})(?P<letter>[A-Za-z])(?P<close>[)\]*.:]{0,3})\s{1,3}"
    r"(?:is|must be|would be|seems|appears)(?: (?:therefore|thus|indeed|clearly|definitely|to be|the|most|only))*$",
    re.IGNORECASE,
)
_BEFORE_JUDGEMENT = frozenset((" is", " be", "the", "ost", "nly", "hus", "ore", "eed", "rly", "ely", "ems", "ars"))
"""Last letters of the words that `_VERDICT` may end with: a quick refusal of most places."""
_DRESS = re.compile(
    r"(?:[\s*_`\"'$#>]|\\[(\[]|\\(?:text|textbf|mathrm|mathbf|boxed)\s?\{|\b(?:option|choice|letter|answer|either|indeed|"
    r"clearly|definitely|likely|probably|therefore|thus)\b[:\s]*){1,8}",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?P<open>[(\[{]{0,2})\s?(?P<letter>[A-Za-z])(?![A-Za-z0-9'’_])(?P<close>[)\]}]{0,2})")
_SECOND = re.compile(
    r"[\s*_`$)\]}.]{0,6}(?:/|,|;|&|\\?\bor\b|\band\b|\boder\b|\bund\b|\bou\b)(?:[\s*_`$(\[{]|\b(?:or|and|possibly|maybe|perhaps"
    r"|also|either|option|choice|both)\b){0,8}(?P<other>[A-Z])(?![A-Za-z0-9'’_])(?!\W{1,3}(?:is|are)\W{1,3}(?:not|in|wrong|false))"
)
_REASONED = re.compile(
    r"[ \t]+(?:because|since|as|for|given|due|is|which|so|and|or|but|with|by|from|based|in|the|would|seems|–|—|-|\()(?![A-Za-z])"
)
_LINE = re.compile(
    r"(?:(?i:so|thus|hence|therefore|final(?:ly)?)[,:]?\s{1,3})?[\s*_#>$`\"'(\[{]*(?:\\(?:text|math)\w*\{)?[(\[]?(?P<letter>[A-Za-z])(?P<end>[)\]}.:,*_`\"'$\s]*)"
)
_LABELLED_LINE = re.compile(
    r"(?:(?i:so|thus|hence|therefore|final(?:ly)?)[,:]?\s{1,3})?[\s*_#>]*[(\[]?(?P<letter>[A-Z])[)\].:][*_]*\s+(?P<text>\S.*)"
)
_TAG = re.compile(r"<(answer|choice|option)>(.{0,1000}?)</\1>", re.IGNORECASE | re.DOTALL)
_BRACKETED = re.compile(
    r"(?<![A-Za-z0-9])[(\[*]{1,2}([A-Za-z])[)\]*]{1,2}(?![A-Za-z0-9])|(?<![A-Za-z0-9])([B-HJ-Z])(?![A-Za-z0-9'’])"
)


def committed(text: str, options: Mapping[str, str], *, lenient: bool = False) -> Choice:
    """What the text commits to last; with `lenient`, else the last letter that stands alone or the one option it restates.

    `options` maps capital letters to texts.
    """
    if not text.isascii():
        text = text.translate(_FULLWIDTH)
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text  # a few capitals become two characters; then only lower-case phrases are found
    for content in _candidates(text, lowered, options):
        if (found := read_choice(content, options)) is not None:
            return found
    return _anywhere(text, options) if lenient else NO_CHOICE


def read_choice(content: str, options: Mapping[str, str]) -> Choice | None:
    """The option that a stated answer names, by letter or by text; None where it names none."""
    dressed = _DRESS.match(content)
    bare = content[dressed.end() :] if dressed else content
    label = _LABEL.match(bare)
    if label is not None and (found := _labelled(label, bare[label.end() :], options)) is not None:
        return found
    return restated(content, options) or (restated(bare, options) if bare is not content else None)


def restated(content: str, options: Mapping[str, str]) -> Choice | None:
    """The one option whose text the content is, or begins with up to a word's end; the longest of several such."""
    said = normalized(content)
    best: tuple[int, str] | None = None
    for letter, text in options.items():
        stated = _option(text)
        if len(stated) > 1 and said.startswith(stated) and not said[len(stated) : len(stated) + 1].isalnum():
            if best is not None and best[0] == len(stated):
                return Choice(None, "two options have the text that the answer restates")
            if best is None or best[0] < len(stated):
                best = (len(stated), letter)
    return Choice(best[1]) if best else None


@lru_cache(maxsize=8192)
def _option(text: str) -> str:
    return normalized(text)


def normalized(text: str) -> str:
    """Lower case, single spaces, without dressing at the ends."""
    text = " ".join(text.lower().split()).strip("*_`\"'$.,;:!{}[]() ")
    return text.removeprefix("\\text{").removeprefix("the ").strip()


def _candidates(text: str, lowered: str, options: Mapping[str, str]) -> Iterator[str]:
    """What may state the answer, from the end of the text to its beginning."""
    last_line = text.rstrip().rfind("\n") + 1
    marks: list[tuple[int, str, str]] = [(last_line, "line", "")]
    if boxed := stated_boxes(text):
        marks.append((boxed[-1].start, "whole", ", ".join(dict.fromkeys(box.content for box in boxed))))
    if "</" in text:
        marks.extend((tag.start(), "whole", tag[2]) for tag in list(_TAG.finditer(text))[-_OCCURRENCES:])
    words = [(word, kind) for word, kind in (_WORDS if text.isascii() else _ALL_WORDS) if word in lowered]
    end = len(text)
    for start in (last_line, min(last_line, max(0, len(text) - _TAIL)), 0):  # most texts commit at the end
        found = [mark for mark in marks if start <= mark[0] < end or (mark[0] == end == len(text))]
        for word, kind in words:
            position = min(len(text), end + len(word) - 1)
            for _ in range(_OCCURRENCES):
                position = lowered.rfind(word, start, position)
                if position < 0:
                    break
                found.append((position, kind, ""))
        for position, kind, content in sorted(found, reverse=True):
            if kind == "whole":
                yield content
            elif kind == "line":
                if (letter := _last_line(text, options)) is not None:
                    yield letter
            elif kind == "judgement":
                if (letter := _judged(text, position)) is not None:
                    yield letter
            elif (rest := _phrased(text, lowered, position, named=kind == "name")) is not None:
                yield rest
        end = start


def _last_line(text: str, options: Mapping[str, str]) -> str | None:
    """The letter that the last line is, with or without its option's text, or whose text it is; a remark on an option is none."""
    line = text.rstrip().rpartition("\n")[2]
    if (match := _LINE.fullmatch(line)) is not None:
        return str(match["letter"])
    if len(line) > MAX_OPTION_LENGTH:
        return None
    if (match := _LABELLED_LINE.fullmatch(line)) is not None:
        return match["letter"] if normalized(match["text"]) == _option(options.get(match["letter"], "\0")) else None
    said = normalized(line)
    named = [letter for letter, option in options.items() if said and _option(option) == said]
    return named[0] if len(named) == 1 else None


def _judged(text: str, position: int) -> str | None:
    """The letter in front of "is correct", "is the answer"."""
    before = text[max(0, position - 60) : position].rstrip()
    if before[-3:].lower() not in _BEFORE_JUDGEMENT or (verdict := _VERDICT.search(before)) is None:
        return None
    letter: str = verdict["letter"]
    if (letter.islower() and not verdict["open"]) or _DOUBTED.search(before[: verdict.start()].lower() + " "):
        return None
    return letter.upper()


def _phrased(text: str, lowered: str, position: int, *, named: bool) -> str | None:
    """What follows "the answer is", "I choose"; None where the phrase is about another option than the chosen one."""
    phrase = _PHRASE.match(lowered, position)
    if phrase is None:
        return None
    before = lowered[max(0, position - 40) : position]
    loose = (
        named
        and not lowered.startswith("answer", position)
        and lowered[position] in "cos"
        and phrase[0].strip()[-1:] not in ":="
    )
    if _DOUBTED.search(before) or (loose and not _QUALIFIED.search(before)):
        return None
    return _rest(text, phrase.end())


def _rest(text: str, start: int) -> str:
    """The line from `start`, or the next one that is not empty."""
    end = start
    while end < len(text) and text[end] in " \t\n*_:":
        end += 1
    stop = text.find("\n", end)
    return text[end : stop if stop >= 0 else len(text)][:600]


def _labelled(label: re.Match[str], rest: str, options: Mapping[str, str]) -> Choice | None:
    """The choice that a letter at the beginning of a stated answer is; None where it is a word of prose."""
    if not label["close"] and not _stands_alone(label["letter"], rest):
        return None
    letter = label["letter"].upper()
    second = _SECOND.match(rest)
    if second is not None and second["other"] != letter and second["other"] in options:
        return Choice(None, f"names both {letter} and {second['other']}")
    if letter not in options:
        return Choice(None, f"{letter} is none of the options")
    return Choice(letter)


def _stands_alone(letter: str, rest: str) -> bool:
    """Whether a letter without a bracket is a label: `a` and `I` are words if more than a reason follows."""
    if not rest.strip(" .*)}$"):
        return True
    if letter.islower():
        return letter not in "ai" and rest[0] in ".,:;*$}<"
    if letter in "AI" and rest[0] in " \t":
        return _REASONED.match(rest) is not None or _SECOND.match(rest) is not None
    return True


def _anywhere(text: str, options: Mapping[str, str]) -> Choice:
    letters = [(match[1] or match[2]).upper() for match in _BRACKETED.finditer(text)]
    if letters and letters[-1] in options:
        return Choice(letters[-1])
    said = normalized(text)
    named = [letter for letter, option in options.items() if len(option) > 1 and normalized(option) in said]
    return Choice(named[0]) if len(named) == 1 else NO_CHOICE
