"""Tasks that occur twice: the same content, the same question with another gold, the same wording but for numbers and names."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import orjson

from gymflow.canonical import canonical_json
from gymflow.contracts.task import Task

_NUMBERS = re.compile(r"\d+(?:[.,:]\d+)*")
_CAPITALISED = re.compile(r"\b[A-Z][a-z]+\b")
_NAME = re.compile(r"(?<=[\w,;)] )[A-Z][a-z]+\b")
SHOWN = 3


def normalised(text: str) -> str:
    """The text with its numbers and names replaced, so that tasks from one template are equal. A capitalised word within a
    sentence is a name, there and wherever else it stands; the first word of a sentence alone need not be one."""
    text = _NUMBERS.sub("0", text)
    names = set(_NAME.findall(text))
    return _CAPITALISED.sub(lambda word: "Name" if word[0] in names else word[0], text) if names else text


class Duplicates:
    """Sees every task of a split once, in order; keeps eight bytes for each of what it compares."""

    def __init__(self) -> None:
        self._asked: dict[bytes, tuple[int, bytes]] = {}
        self._wordings: dict[bytes, int] = {}
        self._same: list[tuple[int, int]] = []
        self._contradicting: list[tuple[int, int]] = []
        self._alike: list[tuple[int, int]] = []

    def add(self, line: int, task: Task, items: list[dict[str, Any]]) -> None:
        """Compare a task, with its rendered input, to those before it."""
        create = task.responses_create_params
        expected = _hash({name: value for name, value in task.verifier_fields.items() if name != "id"})
        # Without an input of its own a task is asked by the session, which may read any field.
        asked = _hash([items, create.instructions, create.tools, task.state, None if items else expected.hex()])
        first = self._asked.setdefault(asked, (line, expected))
        if first[0] != line:
            (self._same if first[1] == expected else self._contradicting).append((first[0], line))
            return
        wording = normalised("\n".join(_texts(items)))
        if wording:
            alike = self._wordings.setdefault(
                hashlib.blake2b(wording.encode("utf-8", "replace"), digest_size=8).digest(), line
            )
            if alike != line:
                self._alike.append((alike, line))

    def warnings(self) -> list[str]:
        """One sentence for each kind that was seen."""
        kinds = (
            (self._same, "are the same as an earlier task"),
            (self._contradicting, "ask the same as an earlier task but expect something else"),
            (self._alike, "differ from an earlier task only in numbers and names"),
        )
        return [f"{len(pairs)} tasks {what} (lines {_shown(pairs)})" for pairs, what in kinds if pairs]


def _shown(pairs: list[tuple[int, int]]) -> str:
    return ", ".join(f"{later} like {first}" for first, later in pairs[:SHOWN]) + (", …" if len(pairs) > SHOWN else "")


def _hash(value: Any) -> bytes:
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        data = canonical_json(value)
    return hashlib.blake2b(data, digest_size=8).digest()


def _texts(items: Iterable[dict[str, Any]]) -> Iterable[str]:
    for item in items:
        content = item.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (
                part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
