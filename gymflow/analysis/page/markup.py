"""HTML as values: a string is text and gets escaped, only what `element` made is markup."""

import html
from collections.abc import Sequence
from typing import TypeAlias

from gymflow.legible import legible

VOID = frozenset({"meta", "input", "br", "line", "circle", "rect", "path", "polyline", "polygon"})
"""Elements without content; those of SVG are closed in place."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | Sequence[Child] | None"
"""What stands in an element; a string that is no Markup is text."""


def escaped(text: str) -> Markup:
    """Text as it is read, whatever stands in it."""
    return Markup(html.escape(legible(text)))


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """`element("td", "a < b", class_="number")`; underscores in names of attributes become dashes, None and False leave one out."""
    written = "".join(
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Several one after the other."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escaped(child))
        elif child is not None:
            parts.append(joined(*child))
    return Markup("".join(parts))


def said(text: str | None, most: int = 300) -> Markup:
    """Words that are not ours: set apart from the direction in which the page is written, and cut where they are long."""
    words = " ".join((text or "").split())
    return element("bdi", words if len(words) <= most else words[: most - 1] + "…")
