r"""One spelling for what models and datasets write in many: Unicode, Markdown, LaTeX dressing, units.

>>> clean(r"$\dfrac{1}{2}\text{ cm}$"), clean("−½"), clean(r"**1\,000**")
('\\frac{1}{2}', '-\\frac{1}{2}', '1000')
"""

import re

_CHARACTERS = str.maketrans(
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | {ord(minus): "-" for minus in "−‐‑‒–—﹣"}
    | {ord(space): " " for space in "\u00a0\u2002\u2003\u2009\u200a\u202f\u3000"}
    | {ord(nothing): "" for nothing in "\u200b\u200c\u200d\u2060\ufeff"}
    | {ord(subscript): f"_{digit}" for digit, subscript in enumerate("₀₁₂₃₄₅₆₇₈₉")}
    | {
        ord(sign): command
        for sign, command in {
            "×": r"\times ",
            "·": r"\cdot ",
            "⋅": r"\cdot ",
            "÷": "/",
            "⁄": "/",
            "∕": "/",
            "π": r"\pi ",
            "∞": r"\infty ",
            "±": r"\pm ",
            "∓": r"\mp ",
            "≤": r"\le ",
            "≥": r"\ge ",
            "≠": r"\ne ",
            "∪": r"\cup ",
            "∩": r"\cap ",
            "∅": r"\emptyset ",
            "∈": r"\in ",
            "θ": r"\theta ",
            "α": r"\alpha ",
            "β": r"\beta ",
            "…": r"\ldots ",
            "⋯": r"\ldots ",
            "％": "%",
        }.items()
    }
)
_VULGAR = {
    sign: rf"\frac{{{top}}}{{{bottom}}}"
    for sign, top, bottom in (
        ("½", 1, 2), ("⅓", 1, 3), ("⅔", 2, 3), ("¼", 1, 4), ("¾", 3, 4), ("⅕", 1, 5), ("⅖", 2, 5), ("⅗", 3, 5),
        ("⅘", 4, 5), ("⅙", 1, 6), ("⅚", 5, 6), ("⅐", 1, 7), ("⅛", 1, 8), ("⅜", 3, 8), ("⅝", 5, 8), ("⅞", 7, 8),
        ("⅑", 1, 9), ("⅒", 1, 10),
    )
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_RAISED = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_ROOT = re.compile(r"√\s*(\(|\{|\d+|[A-Za-z])")

_DRESSING = re.compile(
    r"(?<!\\)\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|nolimits|mathstrut|!|,)(?![A-Za-z])|\\[$]|[$]|(?<!\\)\\[()\[\]]"
)
_SPACE = re.compile(r"(?:(?<!\\)\\[;: ]|~|\\q?quad\b|\s)+")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(?:(\d)\s*(\d)(?!\d)|(\d)\s*(?=\{)|(?<!\})(?P<a>[A-Za-z])\s*(?P<b>[A-Za-z\d]))")
_FRACTION_TAIL = re.compile(r"(\\frac\{[^{}]*\})\s*(\w)")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\d|[A-Za-z])(?![A-Za-z])")
_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathit|mathsf|mbox|operatorname\*?|emph)\s*\{([^{}]*)\}"
)
_LIST_WORD = re.compile(r"\s*,?\s*\\text\{\s*(?:and|or)\s*\}\s*|\s*,?\s+(?:and|or)\s+(?!equal\b)")
_DEGREES = re.compile(r"\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\bdegrees?\b)")
_PERCENT = re.compile(r"\s*(?:\\%|%|\bper\s?cent\b)")
_EXPONENT = re.compile(r"\^\s*(-?\d{2,})")
_DIGIT_GROUPS = re.compile(r"(?<![\d.])\d{1,3}(?: \d{3})+(?![\d])")
_SCIENTIFIC = re.compile(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,4})(?![\dA-Za-z.])")
_TAIL = ".,;:?。，；* "

_SCALE = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALED = re.compile(rf"([\d.,]+)\s*(?:\\text\{{)?\s*({'|'.join(_SCALE)})\s*\}}?$", re.IGNORECASE)
_UNIT_TEXT = re.compile(r"\s*\\text\{([^{}]*)\}(?:\^\{?-?\d\}?)?$")
_UNIT_WORDS = re.compile(r"(?<=[\d})])\s*((?:[A-Za-zµμΩ]{2,}\^?\d?[./ ]{0,2}){1,4})$")
_NOT_UNITS = re.compile(
    r"(?:pi|sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|inf|infinity|mod|choose|and|or|to|is|not|if|for|i|e|x|y|z)\b",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"^[€£¥₹]\s*|\s*[€£¥₹]$")

_SAME_UNIT = {
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


def clean(text: str) -> str:
    """The answer without dressing and unit, in one spelling."""
    return split_unit(normalize(text))[0]


def normalize(text: str) -> str:
    """The answer without dressing: what stays is digits, letters, operators, brackets and LaTeX commands."""
    if not text.isascii():
        text = _ascii(text)
    text = _DRESSING.sub(_undressed, text).strip()
    if text.isdecimal():
        return text
    text = text.replace("**", "") if "**" in text and not re.search(r"\w\*\*\w", text) else text
    text = _LIST_WORD.sub(", ", text)
    if "\\" in text:
        text = _TEXT.sub(_text, text)
        text = _FRACTION.sub(r"\\frac", text)
        text = _SHORT_FRACTION.sub(_braced, text)
        text = _FRACTION_TAIL.sub(r"\1{\2}", text)
        text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    text = _SPACE.sub(" ", text.replace("{,}", ","))
    text = _PERCENT.sub("%", _DEGREES.sub("", text))
    text = _EXPONENT.sub(r"^{\1}", text)
    text = _DIGIT_GROUPS.sub(lambda match: match.group().replace(" ", ""), text)
    text = _SCIENTIFIC.sub(r"\1*10^{\2}", text)
    text = _CURRENCY.sub("", text.strip(_TAIL))
    while text.startswith("{") and text.endswith("}") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def split_unit(text: str) -> tuple[str, str | None]:
    """The answer and its unit, if one follows a number; the unit in one spelling where it is a known one."""
    if not text or (text[-1].isdigit() and "\\text" not in text):
        return text, None
    if scaled := _SCALED.search(text):
        return f"{text[: scaled.start()]}{scaled[1]}*10^{{{_SCALE[scaled[2].lower()]}}}", None
    match = _UNIT_TEXT.search(text) or _UNIT_WORDS.search(text)
    if match is None or match.start() == 0 or _NOT_UNITS.match(match[1].strip()):
        return text, None
    power = text[match.end(1) :].strip("}^{")
    name = match[1].strip(" .").lower() + (f"^{power}" if power else "")
    return text[: match.start()].rstrip(), _SAME_UNIT.get(name) or _SAME_UNIT.get(name.rstrip("s")) or name


def units_differ(one: str | None, other: str | None) -> bool:
    """Whether both are known units, and not the same."""
    known = _SAME_UNIT.values()
    return one is not None and other is not None and one != other and one in known and other in known


def _ascii(text: str) -> str:
    for sign, fraction in _VULGAR.items():
        if sign in text:
            text = text.replace(sign, fraction)
    text = _RAISED.sub(lambda match: f"^{{{match.group().translate(_SUPERSCRIPTS)}}}", text)
    return _ROOT.sub(_root, text).translate(_CHARACTERS)


def _root(match: re.Match[str]) -> str:
    return rf"\sqrt{match[1]}" if match[1] in "({" else rf"\sqrt{{{match[1]}}}"


def _undressed(match: re.Match[str]) -> str:
    return " " if match.group() in ("\\(", "\\)", "\\[", "\\]", "$") else ""


def _text(match: re.Match[str]) -> str:
    """`\\mathrm{e}` is a letter, `\\text{ cm}` stays marked as text."""
    content = match[1].strip()
    if match.group().startswith("\\operatorname"):
        return rf"\{content} " if content.isalpha() else content
    return content if len(content) == 1 and content in "eidxyznk" else rf"\text{{{content}}}"


def _braced(match: re.Match[str]) -> str:
    if match[3] is not None:
        return rf"\frac{{{match[3]}}}"
    if match["a"] is not None:
        return rf"\frac{{{match['a']}}}{{{match['b']}}}"
    return rf"\frac{{{match[1]}}}{{{match[2]}}}"


def _closes_at_end(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return position == len(text) - 1
    return False
