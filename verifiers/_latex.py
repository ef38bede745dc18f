r"""One spelling for what models and datasets write in many: Unicode, Markdown, LaTeX dressing.

>>> normalize(r"$\dfrac{1}{2}$."), normalize("−½"), normalize(r"**1\,000**")
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
TEXT_COMMAND = re.compile(r"\\text\{([^{}]*)\}")
_PRODUCT = re.compile(r"(?i:[^\Weiou\d_]{2,4}|[^\Weiou\d_]i)")
_LIST_WORD = re.compile(r"\s*,?\s*\\text\{\s*(?:and|or)\s*\}\s*|\s*,?\s+(?:and|or)\s+(?!equal\b)")
_DEGREES = re.compile(r"\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\bdegrees?\b)")
_PERCENT = re.compile(r"\s*(?:\\%|%|\bper\s?cent\b)")
_EXPONENT = re.compile(r"\^\s*(-?\d{2,})")
_DIGIT_GROUPS = re.compile(r"(?<![\d.])\d{1,3}(?: \d{3})+(?![\d])")
_SCIENTIFIC = re.compile(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,4})(?![\dA-Za-z.])")
_HEAD, _TAIL = ",;:* ", ".,;:?。，；* "
_BOLD = re.compile(r"(?<!\w)\*\*([^*]+)\*\*(?!\w)")
_REPEATING = re.compile(r"(?<![\d.])(\d*)\.(\d*)\\overline\{(\d+)\}")
_EMPTY_SET = re.compile(r"\\(?:emptyset|varnothing)(?![A-Za-z])")

_CURRENCY = re.compile(r"^[€£¥₹]\s*|\s*[€£¥₹]$")


def normalize(text: str) -> str:
    """The answer without dressing: what stays is digits, letters, operators, brackets and LaTeX commands."""
    if not text.isascii():
        text = _ascii(text)
    text = _DRESSING.sub(_undressed, text).strip()
    if text.isdecimal():
        return text
    if "**" in text:
        text = _BOLD.sub(r"\1", text)
    text = _LIST_WORD.sub(", ", text)
    if "\\" in text:
        text = _TEXT.sub(_text, text)
        text = _FRACTION.sub(r"\\frac", text)
        text = _SHORT_FRACTION.sub(_braced, text)
        text = _FRACTION_TAIL.sub(r"\1{\2}", text)
        text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
        text = _EMPTY_SET.sub(r"\\{\\}", _REPEATING.sub(_repeating, text))
    text = _SPACE.sub(" ", text.replace("{,}", ","))
    text = _PERCENT.sub("%", _DEGREES.sub("", text))
    text = _EXPONENT.sub(r"^{\1}", text)
    text = _DIGIT_GROUPS.sub(lambda match: match.group().replace(" ", ""), text)
    text = _SCIENTIFIC.sub(r"\1*10^{\2}", text)
    text = _CURRENCY.sub("", text.rstrip(_TAIL).lstrip(_HEAD))
    while text.startswith("{") and text.endswith("}") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def is_product(run: str) -> bool:
    """Whether a run of letters may be a product of variables: those have no e, o, u, and i only at the end."""
    return _PRODUCT.fullmatch(run) is not None


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
    content: str = match[1].strip()
    if any(map(str.isdigit, content)):
        return content
    if match.group().startswith("\\operatorname"):
        return rf"\{content} " if content.isalpha() else content
    return content if len(content) == 1 and content in "eidxyznk" else rf"\text{{{content}}}"


def _braced(match: re.Match[str]) -> str:
    if match[3] is not None:
        return rf"\frac{{{match[3]}}}"
    if match["a"] is not None:
        return rf"\frac{{{match['a']}}}{{{match['b']}}}"
    return rf"\frac{{{match[1]}}}{{{match[2]}}}"


def _repeating(match: re.Match[str]) -> str:
    """The fraction that a repeating decimal is."""
    whole, fixed, period = match.groups()
    shift = 10 ** len(fixed)
    nines = shift * (10 ** len(period) - 1)
    return rf"\frac{{{int(whole + fixed + period) - int((whole + fixed) or 0)}}}{{{nines}}}"


def _closes_at_end(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return position == len(text) - 1
    return False
