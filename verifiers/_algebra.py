r"""Reading an expression as SymPy's, and whether two are equal. Runs in a worker process only: none of it is bounded.

    >>> equal(read(r"\frac{x^2-1}{x-1}"), read("x+1"))
    True

Text is read by latex2sympy2_extended, never by `sympify` or `parse_expr`, which evaluate Python. Two expressions are equal if they agree
wherever both are real; `n`, `m` and `k` stand for natural numbers where nothing else can decide.
"""

import re
from functools import lru_cache
from typing import Any

import mpmath  # type: ignore[import-untyped]
import sympy
from antlr4 import Token
from gymflow.verifiers._latex import TEXT_COMMAND, is_product
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, NormalizationConfig, _Latex2Sympy, normalize_latex
from math_verify import verify
from math_verify.grader import should_treat_as_complex

_ALLOWED = re.compile(r"[0-9A-Za-z\\{}()\[\]|+\-*/^_=<>!.,:&%' ]*")
_PLAIN_FUNCTIONS = re.compile(
    r"(?<![\\A-Za-z])(sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|pi|infty|inf|infinity)(?![A-Za-z])"
)
_RUN = re.compile(r"[^\W\d_]{2,}")
_IMAGINARY = re.compile(r"(?<![A-Za-z\\])i(?![A-Za-z])")
_INDEX = re.compile(r"\\(?:sum|prod)|_\{?i\b")
_NATURAL = frozenset("nmk")
_NORMALIZATION = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
)
_CONVERSION = ConversionConfig(lowercase_symbols=False)

_POINTS = (
    ("0.7362", "1.4142", "2.2907", "0.3141", "1.8675", "3.1623"),
    ("2.1314", "0.5483", "1.1937", "4.0217", "0.8128", "1.3679"),
    ("5.3021", "7.6191", "6.1307", "3.7853", "8.2249", "4.4721"),
    ("-0.6931", "1.2566", "-2.4429", "0.9057", "-1.5811", "2.6458"),
    ("-3.4187", "-0.8862", "-1.7725", "-2.3026", "-0.4343", "-1.1487"),
)
"""Where expressions of up to six variables are compared."""
_NATURAL_POINTS = (1, 2, 3, 4, 5, 6, 7, 8, 17, 40)
_DIGITS = 30
_AGREEMENT = mpmath.mpf("1e-22")
_NOTHING = mpmath.mpf("1e-60")
mpmath.mp.dps = _DIGITS


class Unreadable(ValueError):
    """The text is not mathematics."""


@lru_cache(maxsize=256)
def read(text: str) -> Any:
    """The expression, relation, set or matrix that the whole text denotes. Raises Unreadable, or what the parser raises."""
    text = _plain_to_latex(TEXT_COMMAND.sub("", text)).strip()
    if not text or not _ALLOWED.fullmatch(text) or has_words(text):
        raise Unreadable("not mathematics")
    latex = normalize_latex(text, config=_NORMALIZATION)
    is_complex = should_treat_as_complex(latex) or bool(_IMAGINARY.search(latex) and not _INDEX.search(latex))
    value = _Whole(is_real=not is_complex, config=_CONVERSION).parse_all(latex)
    if is_complex and isinstance(value, sympy.Basic):
        value = value.xreplace({symbol: sympy.I for symbol in value.free_symbols if symbol.name == "i"})
    return value


def has_words(text: str) -> bool:
    """Whether letters stand together that are no product of variables, no function and no command."""
    letters = _PLAIN_FUNCTIONS.sub(" ", re.sub(r"\\[A-Za-z]+|e(?=\s*\^)|\bd[A-Za-z]\b", " ", text))
    return any(not is_product(run) for run in _RUN.findall(letters))


def equal(gold: Any, answer: Any) -> bool:
    """Whether two values that `read` gave are equal."""
    if isinstance(gold, sympy.Eq) and isinstance(answer, sympy.Eq):
        return _equal_equations(gold, answer)
    if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
        gold, answer = _exact(gold), _exact(answer)
        decided = _agree(gold, answer)
        if decided is not None:
            return decided
    return bool(verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True))


class _Whole(_Latex2Sympy):  # type: ignore[misc]
    """Reads all of the text or none: the plain parser stops silently where it no longer understands."""

    def create_parser(self, latex_str: str) -> Any:
        self.parser = super().create_parser(latex_str)
        return self.parser

    def parse_all(self, latex: str) -> Any:
        value = self.parse(latex)
        if self.parser.getCurrentToken().type != Token.EOF:
            raise Unreadable("unreadable from " + self.parser.getCurrentToken().text)
        return value


def _plain_to_latex(text: str) -> str:
    """`sqrt(2)/2`, `2**3` and `x^(n+1)` as LaTeX."""
    text = _PLAIN_FUNCTIONS.sub(lambda match: "\\infty " if match[1].startswith("inf") else f"\\{match[1]} ", text)
    text = text.replace("**", "^").replace("*", "\\cdot ")
    for opener in ("\\sqrt ", "\\sqrt", "^"):
        position = 0
        while (position := text.find(opener + "(", position)) >= 0:
            start = position + len(opener)
            end = _closing(text, start)
            if end is None:
                break
            text = f"{text[:start]}{{{text[start + 1 : end]}}}{text[end + 1 :]}"
            position = start
    return text


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position
    return None


def _exact(expression: sympy.Expr) -> sympy.Expr:
    """Decimals as the fractions that they denote, and what is unevaluated evaluated; integrals and sums end in numbers anyway."""
    decimals = {number: sympy.Rational(str(number)) for number in expression.atoms(sympy.Float)}
    return expression.xreplace(decimals).doit(integrals=False, sums=False)


def _equal_equations(gold: sympy.Eq, answer: sympy.Eq) -> bool:
    """Whether one equation is a multiple of the other, or both solve to the same for one of their variables."""
    symbols = gold.free_symbols
    if not symbols or symbols != answer.free_symbols:
        return False
    ours, theirs = _exact(gold.lhs - gold.rhs), _exact(answer.lhs - answer.rhs)
    quotient = ours / theirs
    factor = _value(quotient, _points(symbols)[0])
    if factor is not None and factor.real and _agree(quotient, sympy.Float(factor.real, _DIGITS)):
        return True
    for symbol in sorted(symbols, key=str):
        expected, given = sympy.solve(ours, symbol), sympy.solve(theirs, symbol)
        if expected and len(expected) == len(given):
            return all(any(_agree(one, other) for other in given) for one in expected)
    return False


def _agree(gold: sympy.Expr, answer: sympy.Expr) -> bool | None:
    """Equal to 22 digits wherever both are real (at two points at least), or different at one; None where that cannot be said."""
    symbols = gold.free_symbols | answer.free_symbols
    if not symbols:
        ours, theirs = _value(gold, {}), _value(answer, {})
        return None if ours is None or theirs is None else _close(ours, theirs)
    if len(symbols) > len(_POINTS[0]):
        return None
    verdict = _agree_at(_points(symbols), gold, answer)
    if verdict is not True and {str(symbol) for symbol in symbols} <= _NATURAL:
        names = sorted(symbols, key=str)
        points = [{s: sympy.Integer(value + shift) for shift, s in enumerate(names)} for value in _NATURAL_POINTS]
        return _agree_at(points, gold, answer)
    return verdict


def _points(symbols: set[sympy.Symbol]) -> list[dict[Any, Any]]:
    names = sorted(symbols, key=str)
    return [{s: sympy.Float(value, _DIGITS) for s, value in zip(names, point, strict=False)} for point in _POINTS]


def _agree_at(points: list[dict[Any, Any]], gold: sympy.Expr, answer: sympy.Expr) -> bool | None:
    is_complex = gold.has(sympy.I) or answer.has(sympy.I)
    shared = 0
    for point in points:
        ours, theirs = _value(gold, point), _value(answer, point)
        if ours is None or theirs is None or not (is_complex or (_is_real(ours) and _is_real(theirs))):
            continue
        if not _close(ours, theirs):
            return False
        shared += 1
    return True if shared >= 2 else None


def _value(expression: sympy.Expr, point: dict[Any, Any]) -> Any:
    """The value at a point as mpmath's complex number, or None where it has no finite one."""
    value = expression.evalf(_DIGITS, subs=point)
    if value.free_symbols:
        value = expression.xreplace(point).evalf(_DIGITS)  # what does not evaluate term by term, such as an integral
    real, imaginary = value.as_real_imag()
    if not (real.is_Float or real.is_Rational) or not (imaginary.is_Float or imaginary.is_Rational):
        return None
    number = mpmath.mpc(mpmath.mpf(str(real)), mpmath.mpf(str(imaginary)))
    return number if mpmath.isfinite(number) else None


def _is_real(value: Any) -> bool:
    return bool(abs(value.imag) <= _AGREEMENT * max(1, abs(value)))


def _close(one: Any, other: Any) -> bool:
    scale = max(abs(one), abs(other))
    return bool(abs(one - other) <= scale * _AGREEMENT or scale < _NOTHING)
