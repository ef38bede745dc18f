r"""Equality of two answers that are not both plain numbers. Runs in a worker process only: the algebra is not bounded.

    >>> compare({"gold": r"\{1, 2\}", "answer": "2, 1"}), compare({"gold": "(1,2)", "answer": "(2,1)"})["equal"]
    ({'equal': True, 'reason': None}, False)

Lists, sets, tuples, intervals, ratios and matrices are taken apart; what stands in them is compared as numbers, as words, or by algebra.
"""

import re
from fractions import Fraction
from typing import Any

from gymflow.verifiers._algebra import Unreadable, equal, has_words, read
from gymflow.verifiers._arithmetic import TooLarge, evaluate
from gymflow.verifiers._latex import TEXT_COMMAND, normalize
from gymflow.verifiers._numbers import agree
from gymflow.verifiers._structure import (
    ELLIPSIS,
    Structure,
    compact,
    has_decimal_comma,
    is_inequality,
    structure,
    without_assignment,
)
from gymflow.verifiers._units import clean, split_units

MAX_DEPTH = 8

_NAMED_SET = re.compile(r"\\(?:mathbb|setminus|cap)(?![A-Za-z])")


class OtherUnit(ValueError):
    """Both answers have a known unit, and not the same."""


def compare(job: dict[str, str]) -> dict[str, Any]:
    """`{"gold", "answer"}` -> `{"equal", "reason"}`; the texts are whole answers, as extracted."""
    gold, answer = normalize(job["gold"]), normalize(job["answer"])
    try:
        same = _equal(gold, answer, depth=0)
    except (Unreadable, OtherUnit) as error:
        return {"equal": False, "reason": str(error)}
    except TooLarge as error:
        return {"equal": False, "reason": f"the answer holds {error}"}
    return {"equal": same, "reason": None if same else "not equal to the expected answer"}


def _equal(gold: str, answer: str, *, depth: int) -> bool:
    if compact(gold) == compact(answer):
        return True
    if depth > MAX_DEPTH:
        raise Unreadable("nested too deeply to compare")
    gold, answer = without_assignment(gold, answer)
    expected, given = structure(gold), structure(answer)
    if expected is None and given is None:
        return _equal_leaves(gold, answer)
    kinds = {one.kind for one in (expected, given) if one is not None}
    if expected is None or given is None:
        if kinds == {"list"} and (has_decimal_comma(gold, answer) or has_decimal_comma(answer, gold)):
            return True
        if kinds == {"ratio"}:
            return _is_quotient(expected or given, answer if given is None else gold)
        if kinds != {"list"} and (is_inequality(gold) != is_inequality(answer) or _NAMED_SET.search(gold + answer)):
            return _equal_symbolically(gold, answer)  # 1 < x < 2 is (1, 2)
    return _equal_structures(
        expected or Structure("single", (gold,)), given or Structure("single", (answer,)), depth=depth + 1
    )


def _equal_structures(gold: Structure, answer: Structure, *, depth: int) -> bool:
    kinds = {gold.kind, answer.kind}
    if "single" in kinds:
        return len(gold.parts) == len(answer.parts) == 1 and _equal(gold.parts[0], answer.parts[0], depth=depth)
    if kinds & {"ratio", "union"} and len(kinds) > 1:
        return False
    if gold.kind == "union" or "set" in kinds or gold.kind == "list":
        return "matrix" not in kinds and _same_elements(gold.parts, answer.parts, depth)
    if len(gold.parts) != len(answer.parts):
        return False
    if gold.kind == "ratio" and (scaled := _same_ratio(gold.parts, answer.parts)) is not None:
        return scaled
    if len(gold.parts) == 2 and len(kinds - {"list", "matrix"}) > 1:
        return False  # of two bounds, the brackets say whether they belong to the interval
    return _same_sequence(gold.parts, answer.parts, depth)


def _same_sequence(gold: tuple[str, ...], answer: tuple[str, ...], depth: int) -> bool:
    return len(gold) == len(answer) and all(
        _equal(one, other, depth=depth) for one, other in zip(gold, answer, strict=True)
    )


def _same_elements(gold: tuple[str, ...], answer: tuple[str, ...], depth: int) -> bool:
    """Whether each element has an equal one on the other side, one for one; what goes on with dots has an order."""
    if any(map(ELLIPSIS.search, (*gold, *answer))):
        return _same_sequence(gold, answer, depth)
    remaining = _distinct(answer, depth)
    for element in _distinct(gold, depth):
        match = next((other for other in remaining if _equal(element, other, depth=depth)), None)
        if match is None:
            return False
        remaining.remove(match)
    return not remaining


def _distinct(parts: tuple[str, ...], depth: int) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if not any(_equal(other, part, depth=depth) for other in kept):
            kept.append(part)
    return kept


def _same_ratio(gold: tuple[str, ...], answer: tuple[str, ...]) -> bool | None:
    """2:4 is 1:2; None where a term is no rational number."""
    ours, theirs = ([evaluate(clean(part)) for part in parts] for parts in (gold, answer))
    if not all(isinstance(term, Fraction) for term in (*ours, *theirs)):
        return None
    return all(ours[0] * other == theirs[0] * one for one, other in zip(ours, theirs, strict=True)) and any(theirs)


def _is_quotient(ratio: Structure | None, text: str) -> bool:
    """3:4 is 3/4."""
    assert ratio is not None
    terms = [evaluate(clean(part)) for part in ratio.parts]
    if len(terms) != 2 or not isinstance(terms[0], Fraction) or not isinstance(terms[1], Fraction) or not terms[1]:
        return False
    return bool(evaluate(clean(text)) == terms[0] / terms[1])


def _equal_leaves(gold: str, answer: str) -> bool:
    split = split_units(gold.strip(), answer.strip())
    if split.differ:
        raise OtherUnit(split.reason)
    gold, answer = split.gold, split.answer
    if compact(gold) == compact(answer):
        return True
    if ELLIPSIS.search(gold) or ELLIPSIS.search(answer):
        return False
    if (numeric := agree(gold, answer)) is not None:
        return bool(numeric)
    if _is_words(gold):
        return _words(gold) == _words(answer)
    return _equal_symbolically(gold, answer) or _equal_under_natural_log(gold, answer)


def _is_words(text: str) -> bool:
    """Whether a text is a word answer such as `Tuesday`, `\\text{even}` or `(C)`, not a product of letters."""
    if re.search(r"\d|[+*/^=<>]", text):
        return False
    spoken = TEXT_COMMAND.sub(r" \1 ", text)
    return has_words(spoken) or TEXT_COMMAND.fullmatch(text.strip()) is not None


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", TEXT_COMMAND.sub(r" \1 ", text).casefold()))


def _equal_symbolically(gold: str, answer: str) -> bool:
    try:
        expected = read(gold)
    except Exception:
        raise Unreadable("not the expected answer, which can only be compared as text") from None
    try:
        given = read(answer)
    except Exception:
        if gold.isalpha() and _words(gold) == _words(answer):
            return True
        raise Unreadable("the answer cannot be read as mathematics") from None
    return bool(equal(expected, given))


def _equal_under_natural_log(gold: str, answer: str) -> bool:
    """Without a base, log may be the natural one."""
    if "log" not in gold + answer:
        return False
    natural = [re.sub(r"\\?log(?![A-Za-z_ ]*_)", r"\\ln", text) for text in (gold, answer)]
    return natural != [gold, answer] and _equal_symbolically(*natural)
