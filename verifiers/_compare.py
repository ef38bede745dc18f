"""Comparing JSON values: what differs, and where.

    >>> [difference.path for difference in differences({"a": 1, "b": [1, 2]}, {"a": 1.0, "b": [1, 3]}, Rules())]
    ['b.1']

Numbers compare by value (1 is 1.0), never with booleans. A path is keys and positions joined by dots.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from gymflow.verifiers._assignment import matching
from gymflow.verifiers._json import shown

MISSING = object()

_FOLDED = re.compile(r"[ ,./\-_*^'\"]")


@dataclass(frozen=True, slots=True)
class Rules:
    """How values compare. `ignored` and `unordered` hold path patterns: `*` stands for one or more parts of a path."""

    tolerance: float = 0.0
    fold: bool = False
    subset: bool = False
    ignored: tuple[str, ...] = ()
    unordered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the values differ; `MISSING` stands for nothing there."""

    path: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        where = self.path or "the value"
        if self.actual is MISSING:
            return f"{where} is missing"
        if self.expected is MISSING:
            return f"{where} should not be there"
        return f"{where} is {shown(self.actual, 60)}, expected {shown(self.expected, 60)}"


def differences(expected: Any, actual: Any, rules: Rules, path: str = "") -> Iterator[Difference]:
    """Every leaf that differs. With `subset`, keys that are not expected are left alone."""
    if rules.ignored and path and any(fnmatchcase(path, pattern) for pattern in rules.ignored):
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            below = f"{path}.{key}" if path else str(key)
            if key in actual:
                yield from differences(value, actual[key], rules, below)
            elif not _is_ignored(below, rules):
                yield Difference(below, value, MISSING)
        if not rules.subset:
            for key in actual.keys() - expected.keys():
                below = f"{path}.{key}" if path else str(key)
                if not _is_ignored(below, rules):
                    yield Difference(below, MISSING, actual[key])
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _list_differences(expected, actual, rules, path)
    elif not same_scalar(expected, actual, rules):
        yield Difference(path, expected, actual)


def equal(expected: Any, actual: Any, rules: Rules) -> bool:
    """Whether nothing differs."""
    return next(differences(expected, actual, rules), None) is None


def same_scalar(expected: Any, actual: Any, rules: Rules) -> bool:
    """Equality of what is no container, or of containers of different kinds (never equal)."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        try:
            return expected == actual or abs(expected - actual) <= rules.tolerance
        except OverflowError:
            return False
    if isinstance(expected, str) and isinstance(actual, str):
        return expected == actual or (rules.fold and folded(expected) == folded(actual))
    return expected is None and actual is None


def folded(text: str) -> str:
    """Without case, spaces and punctuation, as BFCL compares strings."""
    return _FOLDED.sub("", text.casefold())


def leaves(value: Any) -> int:
    """Number of scalars and empty containers in a value."""
    if isinstance(value, dict | list) and value:
        return sum(map(leaves, value.values() if isinstance(value, dict) else value))
    return 1


def _list_differences(expected: Sequence[Any], actual: Sequence[Any], rules: Rules, path: str) -> Iterator[Difference]:
    if any(fnmatchcase(path, pattern) for pattern in rules.unordered):
        edges = [[equal(one, other, rules) for other in actual] for one in expected]
        columns = matching(edges)
        for position, column in enumerate(columns):
            if column is None:
                yield Difference(f"{path}.{position}" if path else str(position), expected[position], MISSING)
        if not rules.subset:
            for position in sorted(set(range(len(actual))) - set(columns)):
                yield Difference(f"{path}.{position}" if path else str(position), MISSING, actual[position])
        return
    for position in range(max(len(expected), len(actual))):
        below = f"{path}.{position}" if path else str(position)
        if position >= len(actual):
            yield Difference(below, expected[position], MISSING)
        elif position >= len(expected):
            yield Difference(below, MISSING, actual[position])
        else:
            yield from differences(expected[position], actual[position], rules, below)


def _is_ignored(path: str, rules: Rules) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in rules.ignored)
