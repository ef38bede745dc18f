"""Which earlier call a request continues, so that a history is stored once."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gymflow.models.base import Item
from gymflow.models.dialects.messages import MALFORMED, arguments_object

_SERVER_FIELDS = frozenset({"id", "status", "annotations", "logprobs", "object"})
"""Fields that endpoints add to an item and clients may leave out when they send it back."""


@dataclass(slots=True)
class Node:
    """A finished call: what it added to its parent's history, and the calls that continue it."""

    index: int
    added: Sequence[Item]
    output: Sequence[Item]
    instructions: str | None
    parent: "Node | None" = None
    children: "Level" = field(default_factory=lambda: Level())

    def history(self) -> list[Item]:
        """All that the call saw and said, as the endpoint was told and told it."""
        parts: list[Sequence[Item]] = []
        node: Node | None = self
        while node is not None:
            parts += [node.output, node.added]
            node = node.parent
        return [item for part in reversed(parts) for item in part]


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
    """Where a request stands: the call that it continues, how many of its items that call covers, and whether they tell it in
    another shape: without its reasoning, or as a dialect that has no words for all of it."""

    parent: Node | None
    covered: int
    altered: bool = False

    def restore(self, items: Sequence[Item]) -> list[Item]:
        """The request's items with the history as it was, which they cover from then on."""
        history = [] if self.parent is None else self.parent.history()
        restored = [*history, *items[self.covered :]]
        self.covered, self.altered = len(history), False
        return restored


class History:
    """The calls of one role of one rollout as a tree; each path from a root is what the last call on it saw and said."""

    def __init__(self) -> None:
        self._roots = Level()

    def place(self, items: Sequence[Item], instructions: str | None) -> Place:
        """The deepest call whose history and output the items begin with; of several the one that they tell unaltered, else the
        latest. Other instructions make another history."""
        place = Place(None, 0)
        level = self._roots
        while True:
            found: Place | None = None
            for node in level.candidates(items, place.covered):
                if node.instructions != instructions:
                    continue
                end, altered = _continues(items, place.covered, node)
                if end >= 0 and (found is None or not altered):
                    found = Place(node, end, place.altered or altered)
                    if not altered:
                        break
            if found is None or found.parent is None:
                return place
            place, level = found, found.parent.children

    def add(
        self, index: int, parent: Node | None, added: Sequence[Item], output: Sequence[Item], instructions: str | None
    ) -> None:
        """A call has been answered."""
        node = Node(index, added, output, instructions, parent)
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
    """Where the node's items end among `items`, or -1, and whether they stand there in another shape."""
    middle = start + len(node.added)
    end = middle + len(node.output)
    if not node.output and end < len(items) and _is_blank(items[end]):
        end = -1  # chat has no answer of nothing: it comes back as an empty text
    elif items[start:middle] == node.added and items[middle:end] == node.output:
        return end, False
    said = (*node.added, *node.output)
    if 0 <= end <= len(items) and all(same_item(one, items[at]) for at, one in enumerate(said, start)):
        return end, False
    middle = _past_input(items, start, node.added)
    end = -1 if middle < 0 else _past_answer(items, middle, node.output)
    return end, end >= 0


def _past_input(items: Sequence[Item], position: int, given: Sequence[Item]) -> int:
    """Where what a call was given ends among `items` from `position` on, whatever became of reasoning in it; or -1."""
    for item in given:
        if _is_reasoning(item):
            continue
        while position < len(items) and _is_reasoning(items[position]):
            position += 1
        if position == len(items) or not same_item(item, items[position]):
            return -1
        position += 1
    return position


def _past_answer(items: Sequence[Item], position: int, output: Sequence[Item]) -> int:
    """Where an answer ends among `items` from `position` on, or -1. Dialects differ in how they cut a text, in where it stands
    beside calls, and in how much of the reasoning they hand out: the same text and the same calls are the same answer."""
    text = "".join(_text(item) for item in output)
    calls = [core(item) for item in output if item.get("type", "message") != "message" and not _is_reasoning(item)]
    said, made = "", 0
    while said != text or made < len(calls):
        if position == len(items):
            return -1
        item = items[position]
        if item.get("type", "message") == "message":
            said += _text(item)
            if item.get("role") != "assistant" or not text.startswith(said):
                return -1
        elif not _is_reasoning(item):
            if made == len(calls) or not _same_call(calls[made], core(item)):
                return -1
            made += 1
        position += 1
    if output and _is_reasoning(output[-1]):
        while position < len(items) and _is_reasoning(items[position]):
            position += 1
    return position + 1 if not text and position < len(items) and _is_blank(items[position]) else position


def _same_call(made: Any, sent: Any) -> bool:
    """Whether two calls, as `core` has them, are one. What a client makes of arguments that were cut or malformed is its own
    affair."""
    if made == sent:
        return True
    named = all(made.get(name) == sent.get(name) for name in ("type", "call_id", "name"))
    return named and bool(made.get("call_id")) and MALFORMED in (made.get("arguments") or ())


def _is_reasoning(item: Item) -> bool:
    return item.get("type") == "reasoning"


def _is_blank(item: Item) -> bool:
    return item.get("role") == "assistant" and not _text(item)


def _text(item: Item) -> str:
    """What a message says; nothing for other items."""
    if item.get("type", "message") != "message":
        return ""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = (part for part in content or () if isinstance(part, dict))
    return "".join(part.get("text") or part.get("refusal") or "" for part in parts)


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
            # Clients that hold arguments as an object write them their own way, and malformed ones as dialects hand them out.
            said["arguments"] = arguments_object(said["arguments"])
        return said
    return [core(part) for part in value] if isinstance(value, list) else value
