"""Reading Responses output items, the vocabulary in which the engine keeps what a model said."""

from collections.abc import Iterable
from typing import Any


def output_text(items: Iterable[dict[str, Any]]) -> str:
    """Text of the assistant messages among the items, without reasoning; empty if there is none."""
    texts: list[str] = []
    for item in items:
        if item.get("type", "message") != "message" or item.get("role", "assistant") != "assistant":
            continue
        content = item.get("content")
        if isinstance(content, str):
            texts.append(content)
        else:
            for part in content or ():
                if part.get("type") == "output_text":
                    texts.append(part.get("text") or "")
    return "\n".join(text for text in texts if text)


def user_text(items: Iterable[dict[str, Any]]) -> str:
    """Text of the user messages among the items, one after the other."""
    texts: list[str] = []
    for item in items:
        if item.get("type", "message") == "message" and item.get("role") == "user":
            content = item.get("content")
            parts = [{"text": content}] if isinstance(content, str) else content or []
            texts.extend(part.get("text") or "" for part in parts)
    return "\n\n".join(text for text in texts if text)


def function_calls(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The `function_call` items, in order."""
    return [item for item in items if item.get("type") == "function_call"]
