r"""Units and scale words behind a number.

    >>> split_units("5", "5 apples").answer, split_units("5000000", "5 million dollars").answer
    ('5', '5*10^{6}')
    >>> split_units(r"5\text{ km}", "5 m").differ
    True

A unit is dropped, but two known ones that differ are a wrong answer. What may be a product of variables is no unit.
"""

import re
from typing import NamedTuple

from gymflow.verifiers._latex import is_product, normalize

_SCALE = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_UNITS = {
    alias: names[0]
    for names in (
        ("m", "meter", "metre"), ("cm", "centimeter", "centimetre"), ("mm", "millimeter", "millimetre"),
        ("km", "kilometer", "kilometre"), ("in", "inch", "inche"), ("ft", "foot", "feet"), ("mi", "mile"),
        ("s", "sec", "second"), ("min", "minute"), ("h", "hr", "hour"), ("day",), ("week",), ("month",), ("year", "yr"),
        ("kg", "kilogram"), ("g", "gram"), ("mg", "milligram"), ("lb", "pound"), ("oz", "ounce"),
        ("l", "liter", "litre"), ("ml", "milliliter", "millilitre"), ("dollar", "usd"), ("cent",), ("euro", "eur"),
        ("km/h", "kmh", "kph"), ("mph",), ("m/s",), ("cm^2",), ("m^2",), ("cm^3",), ("m^3",), ("km^2",),
    )
    for alias in names
}  # fmt: skip
_TEXT = re.compile(r"\s*\\text\{([^{}]*)\}(\^\{?-?\d\}?)?$")
_WORDS = re.compile(r"(?<=[\d})])(\s*)((?:[A-Za-zµμΩ]+(?:\^\{?-?\d\}?)?[./ ]{0,2}){1,4})$")
_NOT_UNITS = re.compile(
    r"(?:pi|sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|inf|infinity|mod|choose|and|or|to|is|not|if|for)\b", re.IGNORECASE
)


class SplitUnits(NamedTuple):
    """Both answers without their units, and the units in one spelling; None where there is none."""

    gold: str
    answer: str
    gold_unit: str | None
    answer_unit: str | None

    @property
    def differ(self) -> bool:
        """Whether both units are known, and not the same."""
        known = _UNITS.values()
        return self.gold_unit != self.answer_unit and self.gold_unit in known and self.answer_unit in known

    @property
    def reason(self) -> str:
        """Why they differ."""
        return f"the unit is {self.answer_unit}, expected {self.gold_unit}"


def split_units(gold: str, answer: str) -> SplitUnits:
    """Split two normalized answers. Behind a plain number on the other side, any word is a unit."""
    gold, gold_unit = _split(gold, loose=False)
    answer, answer_unit = _split(answer, loose=not re.search("[A-Za-z]", gold))
    return SplitUnits(gold, answer, gold_unit, answer_unit)


def clean(text: str) -> str:
    """One answer without dressing and unit."""
    return _split(normalize(text), loose=False)[0]


def _split(text: str, *, loose: bool) -> tuple[str, str | None]:
    match = _TEXT.search(text) if "\\text" in text else None
    if match is not None:
        words = f"{match[1].strip()}{match[2] or ''}".split()
    elif (match := _WORDS.search(text)) is not None:
        words = match[2].split()
    if match is None or not words or not re.search(r"\d|\\pi", text[: match.start()]) or _NOT_UNITS.match(words[0]):
        return text, None
    value = text[: match.start()].rstrip()
    scaled = words[0].lower() in _SCALE
    if scaled:
        value = f"{value}*10^{{{_SCALE[words.pop(0).lower()]}}}"
    unit = _canonical(words)
    explicit = match.re is _TEXT or scaled
    if not words or explicit or _is_unit(unit, words, spaced=bool(match[1]), loose=loose):
        return value, unit
    return text, None


def _is_unit(unit: str | None, words: list[str], *, spaced: bool, loose: bool) -> bool:
    if unit in _UNITS.values() and (loose or len(words[0]) > 1):
        return True
    return spaced and all(len(word) > 1 for word in words) and (loose or not all(map(is_product, words)))


def _canonical(words: list[str]) -> str | None:
    name = re.sub(r"[{}]", "", " ".join(words)).lower().strip(" .")
    return _UNITS.get(name) or _UNITS.get(name.rstrip("s")) or name or None
