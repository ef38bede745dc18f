"""Text that a model, a dataset or an endpoint wrote, made fit to be shown: it cannot command what it is shown on."""

import re
import unicodedata

HARMLESS = "\n\t\u200c\u200d\u200e\u200f"
"""Line breaks, tabs, and the joiners and marks that scripts and emoji are written with."""
RISKY = re.compile(r"[^ -~\u00a1-\u00ac\u00ae-\u05ff]")
"""Characters that may be risky; the others are not looked up."""


def legible(text: str) -> str:
    """What would move a cursor, ring, change colours or the direction of writing is shown as a sign or an escape instead."""
    return RISKY.sub(_shown, text.replace("\r\n", "\n"))


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in HARMLESS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
