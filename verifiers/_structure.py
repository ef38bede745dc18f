r"""The outer form of an answer: a list, a set, a tuple, an interval, a ratio, a union, a matrix, or none of them.

>>> structure(r"(1, 2]")
Structure(kind='(]', parts=('1', '2'))
"""

import re
from typing import NamedTuple

from gymflow.verifiers._numbers import agree

ELLIPSIS = re.compile(r"\\[lcdv]?dots\b|\\dots[cbmio]?\b|\.{3,}")
RELATION = re.compile(r"=|<|>|\\(?:le|ge|leq|geq|lt|gt|ne|neq)\b")

_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_BRACKETS = (
    ("\\{", "\\}", "set"),
    ("\\langle", "\\rangle", "()"),
    ("(", ")", "()"),
    ("[", "]", "[]"),
    ("(", "]", "(]"),
    ("[", ")", "[)"),
)
_MATRIX = re.compile(r"\\begin\{([pbvBV]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", re.DOTALL)
_ROW_END = re.compile(r"\\\\(?:\[[^\]]*\])?")
_ASSIGNMENT = re.compile(
    r"\\?[A-Za-z]+(?:_(?:\w|\{\w+\}))?(?:\([A-Za-z](?:,\s*[A-Za-z])*\))?\s*(?:=|\\in\b)\s*(?![=<>])"
)


class Structure(NamedTuple):
    """`kind` is set, list (nothing around it), ratio, union, matrix, or the pair of brackets of a tuple or interval."""

    kind: str
    parts: tuple[str, ...]


def structure(text: str) -> Structure | None:
    """The form of a normalized answer; None for a single expression. `a \\pm b` is a list of two."""
    text = text.strip()
    if matrix := _MATRIX.fullmatch(text):
        return _matrix(matrix[2])
    for kind, separators in (("list", ",;"), ("union", "\\cup"), ("ratio", ":")):
        parts = _split(text, separators)
        if len(parts) > 1 and not (kind == "list" and agree(text, "0") is not None):
            return Structure(kind, _both_signs(parts) if kind == "list" else parts)
    for opening, closing, kind in _BRACKETS:
        if text.startswith(opening) and text.endswith(closing):
            inside = text[len(opening) : -len(closing)].strip()
            parts = _split(inside, ",;")
            if _balanced(inside) and (len(parts) > 1 or kind == "set"):
                return (
                    Structure(kind, _both_signs(parts) if kind == "set" else parts) if inside else Structure(kind, ())
                )
    signs = _both_signs((text,))
    return Structure("list", signs) if len(signs) > 1 else None


def without_assignment(gold: str, answer: str) -> tuple[str, str]:
    """`x = 5` says no more than `5`, where only one side names a variable, or both the same one."""
    ours, theirs = _assigned(gold), _assigned(answer)
    if ours is not None and theirs is not None:
        same = compact(gold[:ours]) == compact(answer[:theirs])
        return (gold[ours:], answer[theirs:]) if same else (gold, answer)
    if ours is not None and not RELATION.search(answer):
        return gold[ours:], answer
    if theirs is not None and not RELATION.search(gold):
        return gold, answer[theirs:]
    return gold, answer


def is_inequality(text: str) -> bool:
    """Whether the text relates two sides, but not by `=`."""
    return "=" not in text and RELATION.search(text) is not None


def has_decimal_comma(one: str, other: str) -> bool:
    """Whether the other writes a decimal such as 3.14 as 3,14, as most of Europe does."""
    digits = re.fullmatch(r"(-?\d+),(\d+)", other)
    return digits is not None and "." in one and agree(one, f"{digits[1]}.{digits[2]}") is True


def compact(text: str) -> str:
    """Without spaces."""
    return text.replace(" ", "")


def _assigned(text: str) -> int | None:
    match = _ASSIGNMENT.match(text)
    return match.end() if match and not RELATION.search(text[match.end() :]) else None


def _matrix(body: str) -> Structure:
    rows = [[cell.strip() for cell in row.split("&")] for row in _ROW_END.split(body) if row.strip()]
    cells = tuple(cell for row in rows for cell in row)
    is_vector = len(rows) == 1 or all(len(row) == 1 for row in rows)
    return Structure("matrix", cells if is_vector else (str(len(rows)), *cells))


def _both_signs(parts: tuple[str, ...]) -> tuple[str, ...]:
    expanded: list[str] = []
    for part in parts:
        if "\\pm" in part or "\\mp" in part:
            expanded.append(part.replace("\\pm", "+").replace("\\mp", "-"))
            expanded.append(part.replace("\\pm", "-").replace("\\mp", "+"))
        else:
            expanded.append(part)
    return tuple(expanded)


def _split(text: str, separators: str) -> tuple[str, ...]:
    """Parts between separators outside all brackets; `separators` is single characters, or one LaTeX command."""
    command = separators if separators[0] == "\\" else None
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        character = text[position]
        if command and depth == 0 and text.startswith(command, position):
            parts.append(text[start:position].strip())
            position = start = position + len(command)
            continue
        if character == "\\":
            position += 1
            character = text[position : position + 1]
            if character not in _OPEN and character not in _CLOSE:
                position += 1
                continue
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif depth == 0 and not command and character in separators and not _in_number(text, position):
            parts.append(text[start:position].strip())
            start = position + 1
        position += 1
    return (*parts, text[start:].strip())


def _in_number(text: str, position: int) -> bool:
    """Whether the separator is a comma within one number such as 12,345."""
    return (
        re.match(r",\d{3}(?!\d)", text[position:]) is not None
        and re.search(r"(?<![\d,])[1-9]\d{0,2}(?:,\d{3})*$", text[:position]) is not None
    )


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth < 0:
            return False
    return depth == 0
