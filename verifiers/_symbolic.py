r"""Equality of two answers by structure and computer algebra. Runs in a worker process only: none of it is bounded.

    >>> compare({"gold": r"(x+1)^2", "answer": "x^2+2x+1"})
    {'equal': True, 'reason': None}

Lists, sets, tuples, intervals, ratios and matrices are taken apart here; their elements are read by latex2sympy2_extended
(never by `sympify`, which evaluates Python) and compared at points and by math-verify. Two expressions are equal if they agree
wherever both are real; `n`, `m` and `k` stand for natural numbers where nothing else can decide.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

import sympy
from antlr4 import Token
from latex2sympy2_extended.latex2sympy2 import (
    ConversionConfig,
    NormalizationConfig,
    _Latex2Sympy,
    normalize_latex,
)
from math_verify import verify
from math_verify.grader import should_treat_as_complex

from gymflow.verifiers._latex import clean, normalize, split_unit, units_differ
from gymflow.verifiers._numbers import TooLarge, agree


class Structure(NamedTuple):
    """A composite answer: `kind` is set, list, ratio, union, matrix or the pair of brackets of a tuple."""

    kind: str
    parts: tuple[str, ...]


class Unreadable(ValueError):
    """The text is not mathematics."""


_ELLIPSIS = re.compile(r"\\[lcdv]?dots\b|\\dots[cbmio]?\b|\.{3,}")
_OPEN, _CLOSE = "([{", ")]}"
_WORDS = re.compile(r"[^\W\d_]{2,}")
_PRODUCT = re.compile(r"(?i:[^\Weiou\d_]{2,4}|[^\Weiou\d_]i)")
_TEXT_COMMAND = re.compile(r"\\text\{([^{}]*)\}")
_MATRIX = re.compile(r"\\begin\{([pbvBV]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", re.DOTALL)
_ASSIGNMENT = re.compile(
    r"\\?[A-Za-z]+(?:_(?:\w|\{\w+\}))?(?:\([A-Za-z](?:,\s*[A-Za-z])*\))?\s*(?:=|\\in\b)\s*(?![=<>])"
)
_ALLOWED = re.compile(r"[0-9A-Za-z\\{}()\[\]|+\-*/^_=<>!.,:&%' ]*")
_PLAIN_FUNCTIONS = re.compile(
    r"(?<![\\A-Za-z])(sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|pi|infty|inf|infinity)(?![A-Za-z])"
)
_RELATION = re.compile(r"=|<|>|\\(?:le|ge|leq|geq|lt|gt|ne|neq)\b")
_NATURAL = frozenset("nmk")


def compare(job: dict[str, str]) -> dict[str, Any]:
    """`{"gold", "answer"}` -> `{"equal", "reason"}`; the texts are whole answers, as extracted."""
    gold, answer = normalize(job["gold"]), normalize(job["answer"])
    try:
        equal = _equal(gold, answer, depth=0)
    except Unreadable as error:
        return {"equal": False, "reason": str(error)}
    except TooLarge as error:
        return {"equal": False, "reason": f"the answer holds {error}"}
    return {"equal": equal, "reason": None if equal else "not equal to the expected answer"}


def _equal(gold: str, answer: str, *, depth: int) -> bool:
    if _compact(gold) == _compact(answer):
        return True
    if depth > 8:
        raise Unreadable("nested too deeply to compare")
    gold, answer = _without_assignment(gold, answer)
    expected, given = _structure(gold), _structure(answer)
    if expected is None and given is None:
        return _equal_leaves(gold, answer)
    if expected is None and given is not None and given.kind == "list" and _decimal_comma(gold, answer):
        return True
    if _is_inequality(gold) != _is_inequality(answer) and "list" not in (
        expected and expected.kind,
        given and given.kind,
    ):
        return _equal_symbolically(gold, answer)  # 1 < x < 2 is (1, 2)
    return _equal_structures(
        expected or Structure("single", (gold,)), given or Structure("single", (answer,)), depth=depth + 1
    )


def _equal_structures(gold: Structure, answer: Structure, *, depth: int) -> bool:
    kinds = (gold.kind, answer.kind)
    if "single" in kinds and len(gold.parts) == len(answer.parts) == 1:
        return _equal(gold.parts[0], answer.parts[0], depth=depth)
    if "single" in kinds:
        return False
    ordered = ("set" not in kinds and gold.kind != "list") or gold.kind == "matrix"
    if ordered:
        brackets_matter = len(gold.parts) == 2 and "list" not in kinds and "matrix" not in kinds
        if (brackets_matter or "ratio" in kinds or "union" in kinds) and gold.kind != answer.kind:
            return False
        if len(gold.parts) != len(answer.parts):
            return False
        if gold.kind == "ratio" and (scaled := _same_ratio(gold.parts, answer.parts)) is not None:
            return scaled
        if gold.kind != "union":
            return all(_equal(one, other, depth=depth) for one, other in zip(gold.parts, answer.parts, strict=True))
    elif "union" in kinds or "ratio" in kinds or "matrix" in kinds:
        return False
    return _same_elements(gold.parts, answer.parts, depth)


def _same_elements(gold: tuple[str, ...], answer: tuple[str, ...], depth: int) -> bool:
    """Whether each element has an equal one on the other side, one for one."""
    if any(map(_ELLIPSIS.search, gold)) or any(map(_ELLIPSIS.search, answer)):
        return len(gold) == len(answer) and all(
            _equal(one, other, depth=depth) for one, other in zip(gold, answer, strict=True)
        )
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
    """2:4 is 1:2; None where a term is not a number."""
    try:
        terms = [[sympy.Rational(part) for part in map(clean, parts)] for parts in (gold, answer)]
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    if not all(terms[0]) or not all(terms[1]):
        return terms[0] == terms[1]
    return len({other / one for one, other in zip(*terms, strict=True)}) == 1


def _structure(text: str) -> Structure | None:
    text = text.strip()
    if "\\pm" in text or "\\mp" in text:
        upper = text.replace("\\pm", "+").replace("\\mp", "-")
        return Structure("list", (upper, text.replace("\\pm", "-").replace("\\mp", "+")))
    for kind, parts in (
        ("list", _split(text, ",;")),
        ("union", _split(text, "\\cup")),
        ("ratio", _split(text, ":")),
    ):
        if len(parts) > 1 and not (kind == "list" and agree(text, "0") is not None):
            return Structure(kind, parts)
    if matrix := _MATRIX.fullmatch(text):
        rows = [_cells(row) for row in re.split(r"\\\\(?:\[[^\]]*\])?", matrix[2]) if row.strip()]
        vector = all(len(row) == 1 for row in rows) or len(rows) == 1
        cells = tuple(cell for row in rows for cell in row)
        return Structure("matrix", cells if vector else (str(len(rows)), *cells))
    for opening, closing, kind in (("\\{", "\\}", "set"), ("\\langle", "\\rangle", "()"), ("(", ")", "()"), ("[", "]", "[]"),
                                   ("(", "]", "(]"), ("[", ")", "[)")):  # fmt: skip
        if text.startswith(opening) and text.endswith(closing):
            inside = text[len(opening) : -len(closing)].strip()
            parts = _split(inside, ",;")
            if _balanced(inside) and (len(parts) > 1 or kind == "set"):
                return Structure(kind, parts if inside else ())
    return None


def _split(text: str, separators: str) -> tuple[str, ...]:
    """Parts between separators outside all brackets; `separators` is single characters, or one LaTeX command."""
    command = separators if separators[0] == "\\" else None
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        character = text[position]
        if character == "\\" and not (command and text.startswith(command, position)):
            position += 1
            character = text[position : position + 1]
            if character.isalpha():
                position += 1
                continue
        if character in _OPEN and character:
            depth += 1
        elif character in _CLOSE and character:
            depth -= 1
        elif depth == 0 and command and text.startswith(command, position):
            parts.append(text[start:position].strip())
            position += len(command)
            start = position
            continue
        elif depth == 0 and not command and character and character in separators and not _in_number(text, position):
            parts.append(text[start:position].strip())
            start = position + 1
        position += 1
    return (*parts, text[start:].strip())


def _in_number(text: str, position: int) -> bool:
    """Whether the separator is a comma within one number such as 12,345."""
    return (
        re.match(r",\d{3}(?!\d)", text[position:]) is not None
        and re.search(r"(?<![\d,])\d{1,3}(?:,\d{3})*$", text[:position]) is not None
    )


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("&")]


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth < 0:
            return False
    return depth == 0


def _decimal_comma(gold: str, answer: str) -> bool:
    """3,14 for 3.14, as most of Europe writes it."""
    whole = re.fullmatch(r"(-?\d+),(\d+)", answer)
    return whole is not None and "." in gold and agree(gold, f"{whole[1]}.{whole[2]}") is True


def _without_assignment(gold: str, answer: str) -> tuple[str, str]:
    """`x = 5` says no more than `5`, where only one side names a variable (or both the same one)."""
    ours, theirs = _ASSIGNMENT.match(gold), _ASSIGNMENT.match(answer)
    ours = ours if ours and not _RELATION.search(gold[ours.end() :]) else None
    theirs = theirs if theirs and not _RELATION.search(answer[theirs.end() :]) else None
    if ours and theirs:
        if _compact(ours.group()) != _compact(theirs.group()):
            return gold, answer
        return gold[ours.end() :], answer[theirs.end() :]
    if ours and not _RELATION.search(answer):
        return gold[ours.end() :], answer
    if theirs and not _RELATION.search(gold):
        return gold, answer[theirs.end() :]
    return gold, answer


def _equal_leaves(gold: str, answer: str) -> bool:
    (gold, gold_unit), (answer, answer_unit) = split_unit(gold.strip()), split_unit(answer.strip())
    if units_differ(gold_unit, answer_unit):
        raise Unreadable(f"the unit is {answer_unit}, expected {gold_unit}")
    if _compact(gold) == _compact(answer):
        return True
    if _ELLIPSIS.search(gold) or _ELLIPSIS.search(answer):
        return False
    if (numeric := agree(gold, answer)) is not None:
        return bool(numeric)
    if _is_words(gold):
        return _words(gold) == _words(answer)
    return _equal_symbolically(gold, answer) or _equal_under_natural_log(gold, answer)


def _equal_under_natural_log(gold: str, answer: str) -> bool:
    """Without a base, log may be the natural one."""
    if "log" not in gold + answer:
        return False
    natural = [re.sub(r"\\?log(?![A-Za-z_ ]*_)", r"\\ln", text) for text in (gold, answer)]
    return natural != [gold, answer] and _equal_symbolically(*natural)


def _equal_symbolically(gold: str, answer: str) -> bool:
    try:
        expected = _parsed(gold)
    except Exception:
        raise Unreadable("not the expected answer, which can only be compared as text") from None
    try:
        given = _parsed(answer)
    except Exception:
        raise Unreadable("the answer cannot be read as mathematics") from None
    return _equal_parsed(expected, given)


def _is_inequality(text: str) -> bool:
    return "=" not in text and _RELATION.search(text) is not None


def _is_words(text: str) -> bool:
    """Whether a text is a word answer such as `Tuesday` or `\\text{even}`, not a product of letters."""
    return not re.search(r"\d|[+*/^=<>]", text) and _has_words(_TEXT_COMMAND.sub(r" \1 ", text))


def _has_words(text: str) -> bool:
    """Whether letters stand together that are not a product of variables: those have no e, o, u, and i only at the end."""
    letters = _PLAIN_FUNCTIONS.sub(" ", re.sub(r"\\[A-Za-z]+|e(?=\s*\^)|\bd[A-Za-z]\b", " ", text))
    return any(not _PRODUCT.fullmatch(run) for run in _WORDS.findall(letters))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", _TEXT_COMMAND.sub(r" \1 ", text).casefold()))


def _compact(text: str) -> str:
    return text.replace(" ", "")


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


_NORMALIZATION = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    text = _plain_to_latex(_TEXT_COMMAND.sub("", text)).strip()
    if not text or not _ALLOWED.fullmatch(text) or _has_words(text):
        raise Unreadable("not mathematics")
    latex = normalize_latex(text, config=_NORMALIZATION)
    is_complex = should_treat_as_complex(latex)
    value = _Whole(is_real=not is_complex, config=ConversionConfig(lowercase_symbols=False)).parse_all(latex)
    if is_complex and isinstance(value, sympy.Basic):
        value = value.xreplace({symbol: sympy.I for symbol in value.free_symbols if symbol.name == "i"})
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


def _equal_parsed(gold: Any, answer: Any) -> bool:
    if isinstance(gold, sympy.Eq) and isinstance(answer, sympy.Eq):
        return _equal_equations(gold, answer)
    if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
        gold, answer = _exact(gold), _exact(answer)
        decided = _agree_at_points(gold, answer)
        if decided is not None:
            return decided
    return bool(verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True))


def _exact(expression: sympy.Expr) -> sympy.Expr:
    """Decimals as the fractions that they denote; unevaluated parts evaluated, but for integrals and sums, which end in numbers."""
    decimals = {number: sympy.Rational(str(number)) for number in expression.atoms(sympy.Float)}
    return expression.xreplace(decimals).doit(integrals=False, sums=False)


def _equal_equations(gold: sympy.Eq, answer: sympy.Eq) -> bool:
    """Whether one equation is a multiple of the other, or both solve to the same for one of their variables."""
    symbols = gold.free_symbols | answer.free_symbols
    if gold.free_symbols != answer.free_symbols or not symbols:
        return False
    ours, theirs = _exact(gold.lhs - gold.rhs), _exact(answer.lhs - answer.rhs)
    quotient = sympy.simplify(ours / theirs)
    if quotient.is_number:
        return bool(quotient.is_finite and not quotient.is_zero)
    for symbol in sorted(symbols, key=str):
        solutions = [sympy.solve(side, symbol) for side in (ours, theirs)]
        if solutions[0] and solutions[1] and len(solutions[0]) == len(solutions[1]):
            return all(any(sympy.simplify(one - other) == 0 for other in solutions[1]) for one in solutions[0])
    return False


_POINTS = (
    ("0.7362", "1.4142", "2.2907", "0.3141", "1.8675", "3.1623"),
    ("2.1314", "0.5483", "1.1937", "4.0217", "0.8128", "1.3679"),
    ("5.3021", "7.6191", "6.1307", "3.7853", "8.2249", "4.4721"),
    ("-0.6931", "1.2566", "-2.4429", "0.9057", "-1.5811", "2.6458"),
    ("-3.4187", "-0.8862", "-1.7725", "-2.3026", "-0.4343", "-1.1487"),
)
_DIGITS = 30


def _agree_at_points(gold: sympy.Expr, answer: sympy.Expr) -> bool | None:
    """Equal to 25 digits wherever both are real (at two points at least), or at no point; None where that cannot be said."""
    symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
    if not symbols:
        values = (_value(gold, {}), _value(answer, {}))
        return None if None in values else _close(*values)
    if len(symbols) > len(_POINTS[0]):
        return None
    points = [{s: sympy.Float(value, _DIGITS) for s, value in zip(symbols, point, strict=False)} for point in _POINTS]
    verdict = _agree_at(gold, answer, points)
    if verdict is not True and {str(symbol) for symbol in symbols} <= _NATURAL:
        naturals = [{symbol: value + shift for shift, symbol in enumerate(symbols)} for value in (*range(1, 9), 17, 40)]
        return _agree_at(gold, answer, [{s: sympy.Integer(v) for s, v in point.items()} for point in naturals])
    return verdict


def _agree_at(gold: sympy.Expr, answer: sympy.Expr, points: list[dict[Any, Any]]) -> bool | None:
    shared = 0
    for point in points:
        ours, theirs = _value(gold, point), _value(answer, point)
        if ours is None or theirs is None:
            continue
        if gold.has(sympy.I) or answer.has(sympy.I) or (abs(sympy.im(ours)) < 1e-20 and abs(sympy.im(theirs)) < 1e-20):
            if not _close(ours, theirs):
                return False
            shared += 1
    return True if shared >= 2 else None


def _value(expression: sympy.Expr, point: dict[Any, Any]) -> Any:
    value = sympy.N(expression.xreplace(point), _DIGITS)
    return value if value.is_number and value.is_finite and not value.free_symbols and _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    return all(part.is_Float or part.is_Rational for part in value.as_real_imag())


def _close(one: Any, other: Any) -> bool:
    scale = max(abs(one), abs(other))
    return bool(scale == 0 or abs(one - other) <= scale * sympy.Float("1e-22", _DIGITS) or scale < sympy.Float("1e-60"))
