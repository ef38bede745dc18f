r"""Evaluates numeric expressions: + - * / ^ !, \frac, \sqrt, \pi, mixed numbers.

    >>> evaluate(r"3\frac{1}{2}"), evaluate(r"\sqrt{\frac{4}{9}}"), evaluate("2(3+4)"), evaluate("x")
    (Fraction(7, 2), Fraction(2, 3), Fraction(14, 1), None)

A rational is an exact Fraction; what is irrational is a Decimal of 60 digits.
"""

import math
import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

Value = Fraction | Decimal

MAX_BITS = 65_536
"""Larger powers are not computed."""
MAX_DEPTH = 30
MAX_LENGTH = 1000

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_TOKEN = re.compile(
    r"\s*(?:(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
    r"|\\(?:frac|sqrt|pi|cdot|times|div)(?![A-Za-z])|\*\*|[-+*/^(){}\[\]!])"
)


class TooLarge(ValueError):
    """The expression is numeric, and its value has more than `MAX_BITS` bits."""


def evaluate(text: str) -> Value | None:
    """The value of the whole text; None where it is not a numeric expression. Raises TooLarge."""
    if len(text) > MAX_LENGTH or (tokens := _tokens(text)) is None:
        return None
    try:
        with localcontext(_CONTEXT):
            parser = _Parser(tokens)
            value = parser.sum(0)
    except TooLarge:
        raise
    except (ValueError, ArithmeticError):
        return None
    return value if parser.position == len(tokens) else None


def decimal(value: Value) -> Decimal:
    """The value to 60 digits."""
    with localcontext(_CONTEXT):
        return value if isinstance(value, Decimal) else Decimal(value.numerator) / Decimal(value.denominator)


def _tokens(text: str) -> list[str] | None:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append(match.group().strip())
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent. Raises ValueError for what is not a number."""

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

    def sum(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        total = self.product(depth)
        while self.peek() in ("+", "-"):
            sign = self.take()
            term = self.product(depth)
            total = _plus(total, term if sign == "+" else -term)
        return total

    def product(self, depth: int) -> Value:
        start = self.position
        value = self.signed(depth)
        divided = False
        while token := self.peek():
            if token in ("*", "\\cdot", "\\times"):
                self.take()
                value = _times(value, self.signed(depth))
            elif token in ("/", "\\div"):
                self.take()
                value = _over(value, self.signed(depth))
                divided = True
            elif token in ("\\frac", "\\sqrt", "\\pi", "("):
                if divided:
                    raise ValueError("1/2x may mean either")
                mixed = token == "\\frac" and self.position == start + 1 and self.tokens[start].isdigit()
                factor = self.signed(depth)
                value = _plus(value, factor) if mixed else _times(value, factor)
            elif token[0].isdigit() and self.position == start + 1 and self.tokens[self.position + 1] == "/":
                numerator = Fraction(self.take())
                self.take("/")
                value = _plus(value, numerator / Fraction(self.take()))
            else:
                break
        return value

    def signed(self, depth: int) -> Value:
        if self.peek() not in ("-", "+"):
            return self.power(depth)
        if depth >= MAX_DEPTH:
            raise ValueError("nested too deeply")
        negative = self.take() == "-"
        value = self.signed(depth + 1)
        return -value if negative else value

    def power(self, depth: int) -> Value:
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

    def primary(self, depth: int) -> Value:
        token = self.take()
        if token in ("(", "{", "["):
            value = self.sum(depth + 1)
            self.take({"(": ")", "{": "}", "[": "]"}[token])
            return value
        if token == "\\frac":
            numerator = self.group(depth)
            return _over(numerator, self.group(depth))
        if token == "\\sqrt":
            index: Value = Fraction(2)
            if self.peek() == "[":
                self.take()
                index = self.sum(depth + 1)
                self.take("]")
            return _power(self.group(depth), _over(Fraction(1), index))
        if token == "\\pi":
            return _PI
        return Fraction(token.replace(",", ""))

    def group(self, depth: int) -> Value:
        """A braced group, or one digit."""
        if self.peek() == "{":
            return self.primary(depth)
        token = self.take()
        if len(token) > 1:
            raise ValueError(token)
        return Fraction(token)


def _alike(one: Value, other: Value) -> tuple[Value, Value]:
    """Both exact, or both to 60 digits."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one, other
    return decimal(one), decimal(other)


def _plus(one: Value, other: Value) -> Value:
    left, right = _alike(one, other)
    return left + right  # type: ignore[operator]


def _times(one: Value, other: Value) -> Value:
    left, right = _alike(one, other)
    return left * right  # type: ignore[operator]


def _over(one: Value, other: Value) -> Value:
    left, right = _alike(one, other)
    return left / right  # type: ignore[operator]


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            return _whole_power(base, int(exponent))
        if exponent == Fraction(1, 2) and base >= 0:
            top, bottom = math.isqrt(base.numerator), math.isqrt(base.denominator)
            if top * top == base.numerator and bottom * bottom == base.denominator:
                return Fraction(top, bottom)
        if exponent.numerator == 1 and exponent.denominator % 2 and base < 0:
            return -_power(-base, exponent)
    if base < 0:
        raise ValueError("not real")
    digits = decimal(base).adjusted() if base else 0
    if abs(digits) * abs(decimal(exponent)) > MAX_BITS:
        raise TooLarge("a power beyond all bounds")
    power = decimal(base) ** decimal(exponent)
    rounded = Fraction(power.to_integral_value())
    if (
        isinstance(base, Fraction)
        and isinstance(exponent, Fraction)
        and rounded**exponent.denominator == base**exponent.numerator
    ):
        return rounded
    return power


def _whole_power(base: Fraction, exponent: int) -> Fraction:
    if base in (0, 1, -1):
        exponent = exponent if abs(exponent) < 2 else 2 - exponent % 2 if exponent > 0 else -(2 - exponent % 2)
    if abs(exponent) * max(base.numerator.bit_length(), base.denominator.bit_length()) > MAX_BITS:
        raise TooLarge("a power beyond all bounds")
    return Fraction(base**exponent)


def _factorial(value: Value) -> Fraction:
    if not isinstance(value, Fraction) or value.denominator != 1 or value < 0:
        raise ValueError("factorial of no natural number")
    if value > 5000:
        raise TooLarge("a factorial beyond all bounds")
    return Fraction(math.factorial(int(value)))
