"""Which earlier call a request continues, so that a history is stored once."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gymflow.models import wire
from gymflow.models.base import Item

_SERVER_FIELDS = frozenset({"id", "status", "annotations", "logprobs", "object"})
"""Fields that endpoints add to an item and clients may leave out when they send it back."""


@dataclass(slots=True)
class Node:
    """A finished call: what it added to its parent's history, and the calls that continue it."""

    index: int
    added: Sequence[Item]
    output: Sequence[Item]
    instructions: str | None
    children: "Level" = field(default_factory=lambda: Level())


class Level:
    """Calls that continue the same call, or none, found by what they begin with."""

    def __init__(self) -> None:
        self._by_start: dict[Hashable, list[Node]] = {}

    def add(self, node: Node) -> None:
        """Put a call in."""
        self._by_start.setdefault(_start(node.added, 0), []).append(node)

    def candidates(self, items: Sequence[Item], position: int) -> Iterator[Node]:
        """Calls that may be continued by the items from `position` on, the latest first."""
        for key in dict.fromkeys((_start(items, position), None)):
            yield from reversed(self._by_start.get(key, ()))


@dataclass(slots=True)
class Place:
    """Where a request stands: the call that it continues, how many of its items that call covers, and whether the client
    left out reasoning that the parent's output had."""

    parent: Node | None
    covered: int
    reasoning_dropped: bool = False


class History:
    """The calls of one role of one rollout as a tree; each path from a root is what the last call on it saw and said."""

    def __init__(self) -> None:
        self._roots = Level()

    def place(self, items: Sequence[Item], instructions: str | None) -> Place:
        """The deepest call whose history and output the items begin with; of several the latest. Other instructions make
        another history."""
        place = Place(None, 0)
        level = self._roots
        while True:
            for node in level.candidates(items, place.covered):
                if node.instructions != instructions:
                    continue
                end, dropped = _continues(items, place.covered, node)
                if end >= 0:
                    place = Place(node, end, place.reasoning_dropped or dropped)
                    level = node.children
                    break
            else:
                return place

    def add(
        self, index: int, parent: Node | None, added: Sequence[Item], output: Sequence[Item], instructions: str | None
    ) -> None:
        """A call has been answered."""
        node = Node(index, added, output, instructions)
        (self._roots if parent is None else parent.children).add(node)


def opening(items: Sequence[Item], instructions: str | None) -> Hashable:
    """Something cheap that is equal for requests of one conversation: the instructions, and the items up to the first that is
    not the system's."""
    end = next((at for at, item in enumerate(items) if item.get("role") not in ("system", "developer")), len(items))
    return instructions, *(_start(items, at) for at in range(end + 1))


def _start(items: Sequence[Item], position: int) -> Hashable:
    """Something cheap that is equal for items that say the same; None where there is no item."""
    if position >= len(items):
        return None
    item = items[position]
    content = item.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return item.get("role"), item.get("call_id"), content[:200] if isinstance(content, str) else None


def _continues(items: Sequence[Item], start: int, node: Node) -> tuple[int, bool]:
    """Where the node's items end among `items`, or -1, and whether reasoning was left out on the way."""
    middle = start + len(node.added)
    end = middle + len(node.output)
    if items[start:middle] == node.added and items[middle:end] == node.output:
        return end, False
    position, dropped = start, False
    for item in (*node.added, *node.output):
        if position < len(items) and same_item(item, items[position]):
            position += 1
        elif item.get("type") == "reasoning":
            dropped = True
        else:
            return -1, False
    return position, dropped


def same_item(one: Item, other: Item) -> bool:
    """Whether two items say the same, however their senders spell it."""
    return one == other or core(one) == core(other)


def core(value: Any) -> Any:
    """An item without what is left out or spelled differently when it is sent back."""
    if isinstance(value, dict):
        said = {key: core(part) for key, part in value.items() if key not in _SERVER_FIELDS and part is not None}
        content = said.get("content")
        if isinstance(content, str) and "role" in said:
            kind = "output_text" if said["role"] == "assistant" else "input_text"
            said["content"] = [{"type": kind, "text": content}] if content else []
        if "role" in said:
            said.setdefault("type", "message")
        if isinstance(said.get("arguments"), str):
            # Clients that hold arguments as an object write them their own way.
            with suppress(ValueError):
                said["arguments"] = wire.loads(said["arguments"] or "{}")
        return said
    return [core(part) for part in value] if isinstance(value, list) else value
