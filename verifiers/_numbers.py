r"""Whether two answers are the same number, so that most verdicts need no computer algebra.

>>> agree(r"\frac{2}{4}", "0.5"), agree("1,000", "1000"), agree("10%", "0.1"), agree(r"\sqrt{8}", r"2\sqrt{2}"), agree("x", "1")
(True, True, True, True, None)
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gymflow.verifiers._arithmetic import TooLarge, Value, decimal, evaluate

SIGNIFICANT_DIGITS = 6
"""A rounded decimal agrees with an exact value if it is right in all its digits and has at least so many."""
IRRATIONAL_DIGITS = 50
"""Two values that are not both rational are equal if they agree in so many digits."""

_INTEGER = re.compile(r"[+-]?\d{1,4000}")
_DECIMAL = re.compile(r"([+-]?)(\d{0,300})\.(\d{1,300})")


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric answer; `decimals` and `digits` (significant ones) if it is one decimal literal; whether `%` stands behind it."""

    value: Value
    decimals: int | None = None
    digits: int = 0
    percent: bool = False


def agree(gold: str, answer: str) -> bool | None:
    """Whether two cleaned answers are the same number; None where one of them is none.

    A percent sign counts for the hundredth or for nothing, but only where the other side has none: 10% is 0.1 and 10.
    Raises TooLarge for an answer beyond all bounds where the gold answer is an ordinary number.
    """
    if gold == answer:
        return True
    try:
        expected = read(gold)
    except TooLarge:
        return None
    if expected is None:
        return None
    given = read(answer)
    if given is None:
        return None
    return _same(expected, given) or (expected.percent != given.percent and _same(_as_part(expected), _as_part(given)))


def read(text: str) -> Number | None:
    """The number that the whole text denotes, or None. Raises TooLarge."""
    percent = text.endswith("%")
    if percent:
        text = text[:-1].rstrip()
    if _INTEGER.fullmatch(text):
        return Number(Fraction(int(text)), percent=percent)
    if literal := _DECIMAL.fullmatch(text):
        sign, whole, fraction = literal.groups()
        value = Fraction(int(whole + fraction), 10 ** len(fraction))
        return Number(-value if sign == "-" else value, len(fraction), len((whole + fraction).lstrip("0")), percent)
    result = evaluate(text)
    return None if result is None else Number(result, percent=percent)


def _as_part(number: Number) -> Number:
    if not number.percent:
        return number
    value = number.value / 100 if isinstance(number.value, Fraction) else decimal(number.value) / Decimal(100)
    return Number(value, None if number.decimals is None else number.decimals + 2, number.digits)


def _same(expected: Number, given: Number) -> bool:
    one, other = expected.value, given.value
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        if one == other:
            return True
    elif _close(decimal(one), decimal(other)):
        return True
    return _rounds_to(one, given) or _rounds_to(other, expected)


def _close(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= max(abs(one), abs(other)).scaleb(-IRRATIONAL_DIGITS)


def _rounds_to(value: Value, literal: Number) -> bool:
    """Whether the decimal literal is the value, rounded or cut off after at least six significant digits."""
    if literal.decimals is None or literal.digits < SIGNIFICANT_DIGITS:
        return False
    step = Fraction(1, 10**literal.decimals)
    if isinstance(value, Fraction) and (value / step).denominator == 1:
        return bool(value == literal.value)  # it has no more digits than the literal, so nothing was rounded
    return bool(abs(Fraction(value) - Fraction(literal.value)) < step)
