r"""Exact reading of numeric answers, so that most verdicts need no computer algebra.

    >>> agree(r"\frac{2}{4}", "0.5"), agree("1,000", "1000"), agree("10%", "0.1"), agree("x", "1")
    (True, True, True, None)

A rational stays an exact fraction. Roots and pi are read as floats, which can only tell two answers apart; that they are
equal is then for the symbolic comparison to prove.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction

MAX_BITS = 65_536
"""Larger powers are not computed."""
MAX_DEPTH = 30
SIGNIFICANT_DIGITS = 6
"""A rounded decimal agrees with an exact value if it is right in all its digits and has at least so many."""


class TooLarge(ValueError):
    """The expression is numeric, and its value has more than `MAX_BITS` bits."""


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric answer: its value (a float where irrational), its digits if it is one decimal literal, and `%` behind it."""

    value: Fraction | float
    decimals: int | None = None
    digits: int = 0
    percent: bool = False


_INTEGER = re.compile(r"[+-]?\d{1,4000}")
_DECIMAL = re.compile(r"([+-]?)(\d{0,300})\.(\d{1,300})")
_TOKEN = re.compile(
    r"\s*(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
    r"|\\(?:frac|sqrt|pi|cdot|times|div)(?![A-Za-z])|\*\*|[-+*/^(){}\[\]!])"
)


def agree(gold: str, answer: str) -> bool | None:
    """Whether two cleaned answers are the same number; None where reading them as numbers cannot tell.

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
    if expected.percent == given.percent:
        return _same(expected, given)
    scale = Fraction(100) if expected.percent else Fraction(1, 100)
    scaled = Number(given.value * scale, given.decimals and given.decimals + (2 if given.percent else -2), given.digits)
    as_part = _same(expected, scaled)
    return True if as_part else _same(expected, given)


def _same(expected: Number, given: Number) -> bool | None:
    a, b = expected.value, given.value
    if isinstance(a, Fraction) and isinstance(b, Fraction) and a == b:
        return True
    if _rounds_to(a, given) or _rounds_to(b, expected):
        return True
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return False
    try:
        return None if math.isclose(a, b, rel_tol=1e-9) else False
    except OverflowError:
        return False


def _rounds_to(value: Fraction | float, decimal: Number) -> bool:
    """Whether the decimal literal is the value, rounded or cut off after at least six significant digits."""
    if decimal.decimals is None or decimal.digits < SIGNIFICANT_DIGITS:
        return False
    step = Fraction(1, 10**decimal.decimals) if decimal.decimals >= 0 else Fraction(10**-decimal.decimals)
    if isinstance(value, Fraction) and (value / step).denominator == 1:
        return value == decimal.value
    return abs(Fraction(value) - Fraction(decimal.value)) < step


def read(text: str) -> Number | None:
    """The number that the whole text denotes, or None. Raises TooLarge."""
    percent = text.endswith("%")
    if percent:
        text = text[:-1].rstrip()
    if _INTEGER.fullmatch(text):
        return Number(Fraction(int(text)), percent=percent)
    if decimal := _DECIMAL.fullmatch(text):
        sign, whole, fraction = decimal.groups()
        value = Fraction(int(whole + fraction), 10 ** len(fraction))
        return Number(-value if sign == "-" else value, len(fraction), len((whole + fraction).lstrip("0")), percent)
    if len(text) > 1000:
        return None
    tokens = _tokens(text)
    if tokens is None:
        return None
    try:
        parser = _Parser(tokens)
        result = parser.sum(0)
        if parser.position < len(tokens) or (isinstance(result, float) and not math.isfinite(result)):
            return None
        return Number(result, percent=percent)
    except TooLarge:
        raise
    except (ValueError, ZeroDivisionError, OverflowError, TypeError):
        return None


def _tokens(text: str) -> list[str] | None:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            return None
        tokens.append(match.group().strip())
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over + - * / ^ !, \\frac, \\sqrt and \\pi. Raises ValueError for what is not a number."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = [*tokens, ""]
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self, expected: str | None = None) -> str:
        token = self.tokens[self.position]
        if not token or (expected is not None and token != expected):
            raise ValueError(token)
        self.position += 1
        return token

    def sum(self, depth: int) -> Fraction | float:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        total = self.product(depth)
        while self.peek() in ("+", "-"):
            total = total + self.product(depth) if self.take() == "+" else total - self.product(depth)
        return total

    def product(self, depth: int) -> Fraction | float:
        start = self.position
        value = self.signed(depth)
        divided = False
        while token := self.peek():
            if token in ("*", "\\cdot", "\\times"):
                self.take()
                value = value * self.signed(depth)
            elif token in ("/", "\\div"):
                self.take()
                value = value / self.signed(depth)
                divided = True
            elif token in ("\\frac", "\\sqrt", "\\pi", "("):
                if divided:
                    raise ValueError("1/2x may mean either")
                mixed = token == "\\frac" and self.position == start + 1 and self.tokens[start].isdigit()
                factor = self.signed(depth)
                value = value + factor if mixed else value * factor
            elif token[0].isdigit() and self.position == start + 1 and self.tokens[self.position + 1] == "/":
                numerator = Fraction(self.take())
                self.take("/")
                value = value + numerator / Fraction(self.take())
            else:
                break
        return value

    def signed(self, depth: int) -> Fraction | float:
        if self.peek() in ("-", "+"):
            negative = self.take() == "-"
            if depth >= MAX_DEPTH:
                raise ValueError("nested too deeply")
            value = self.signed(depth + 1)
            return -value if negative else value
        return self.power(depth)

    def power(self, depth: int) -> Fraction | float:
        value = self.primary(depth)
        while self.peek() == "!":
            self.take()
            value = _factorial(value)
        if self.peek() in ("^", "**"):
            self.take()
            if depth >= MAX_DEPTH:
                raise ValueError("nested too deeply")
            value = _power(value, self.signed(depth + 1))
        return value

    def primary(self, depth: int) -> Fraction | float:
        token = self.take()
        if token in ("(", "{", "["):
            value = self.sum(depth + 1)
            self.take({"(": ")", "{": "}", "[": "]"}[token])
            return value
        if token == "\\frac":
            return self.group(depth) / self.group(depth)
        if token == "\\sqrt":
            index: Fraction | float = Fraction(2)
            if self.peek() == "[":
                self.take()
                index = self.sum(depth + 1)
                self.take("]")
            return _power(self.group(depth), 1 / index)
        if token == "\\pi":
            return math.pi
        return Fraction(token.replace(",", ""))

    def group(self, depth: int) -> Fraction | float:
        if self.peek() == "{":
            return self.primary(depth)
        token = self.take()
        if token != "\\pi" and len(token) > 1:
            raise ValueError(token)
        return math.pi if token == "\\pi" else Fraction(token)


def _power(base: Fraction | float, exponent: Fraction | float) -> Fraction | float:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if base in (0, 1, -1) and abs(exponent) > 1000:
            exponent %= 2
        if abs(exponent) * max(base.numerator.bit_length(), base.denominator.bit_length()) > MAX_BITS:
            raise TooLarge("a power beyond all bounds")
        return base ** int(exponent)
    if isinstance(base, Fraction) and exponent == Fraction(1, 2) and base >= 0:
        top, bottom = math.isqrt(base.numerator), math.isqrt(base.denominator)
        if top * top == base.numerator and bottom * bottom == base.denominator:
            return Fraction(top, bottom)
    if base < 0:
        raise ValueError("not real")
    return math.pow(base, exponent)


def _factorial(value: Fraction | float) -> Fraction:
    if not isinstance(value, Fraction) or value.denominator != 1 or value < 0:
        raise ValueError("factorial of no natural number")
    if value > 5000:
        raise TooLarge("a factorial beyond all bounds")
    return Fraction(math.factorial(int(value)))
