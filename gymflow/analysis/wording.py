"""Responses items in words, as a reader gets to see them."""

import json
from collections.abc import Iterator
from typing import Any

Item = dict[str, Any]
CLIPPED = 500
"""Characters of a part that is no text, such as an image, from which it is cut short."""


def parts(item: Item) -> Iterator[tuple[str, str]]:
    """Who speaks, and what, of a Responses item."""
    kind = item.get("type", "message")
    if kind == "message":
        yield str(item.get("role", "message")), _text_of(item.get("content"))
    elif kind == "reasoning":
        yield "reasoning", "\n".join(filter(None, (_text_of(item.get(name)) for name in ("summary", "content"))))
    elif kind == "function_call":
        yield "call", f"{item.get('name', '')} {item.get('arguments', '')}"
    elif kind == "function_call_output":
        yield "output", _text_of(item.get("output"))
    else:
        yield str(kind), json_text(item)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json_text(content)
    texts = []
    for part in content:
        if isinstance(part, dict) and isinstance(part.get("text") or part.get("refusal"), str):
            texts.append(part.get("text") or f"(refusal) {part['refusal']}")
        else:
            text = json_text(part)
            texts.append(text if len(text) <= CLIPPED else f"{text[:80]}… ({len(text):,} characters)")
    return "\n".join(texts)


def json_text(value: Any) -> str:
    """A value on one line."""
    return json.dumps(value, ensure_ascii=False)
