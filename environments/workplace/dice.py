"""Random draws that every Python version makes alike: only `random()` of a seeded generator is promised to stay the same."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """Seeded from text."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return self._random.random() < share

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.between(0, len(items) - 1)]

    def take(self, items: Sequence[Item], count: int) -> list[Item]:
        """Different ones of the items, in random order."""
        left = list(items)
        return [left.pop(self.between(0, len(left) - 1)) for _ in range(count)]
