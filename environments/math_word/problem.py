"""What a problem schema is: a text with gaps, and a function that draws numbers for them and knows the answer.

rates = Topic("rates")

@rates("easy", "A bus drives at {speed} km/h for {hours} hours. How many kilometres is that?")
def bus(draw: Draw) -> Drawn:
    speed, hours = draw(40, 80), draw(2, 5)
    return {"speed": speed, "hours": hours}, speed * hours
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeVar

Difficulty = Literal["easy", "medium", "hard"]
Answer = int | Fraction | str
"""A whole number, an exact fraction, or text that is already written out (a decimal, or LaTeX)."""
Drawn = tuple[Mapping[str, object], Answer]
"""What fills the gaps of the text, and the answer."""

T = TypeVar("T")

NAMES = ("Amara", "Boris", "Chloe", "Diego", "Elif", "Farid", "Grace", "Hana", "Ivan", "Jonas", "Keiko", "Lucia")


class Draw:
    """Seeded random numbers. Only `random()` is asked for, which is the same in every version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def __call__(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self(0, len(choices) - 1)]

    def two(self, low: int, high: int) -> tuple[int, int]:
        """Two different whole numbers, the smaller one first."""
        first, second = self(low, high), self(low, high - 1)
        second += second >= first
        return min(first, second), max(first, second)

    def names(self) -> tuple[str, str]:
        """Two different first names."""
        first, second = self.two(0, len(NAMES) - 1)
        return NAMES[first], NAMES[second]


@dataclass(frozen=True)
class Schema:
    """One kind of problem. Two problems of a schema differ in numbers and names alone."""

    name: str
    topic: str
    difficulty: Difficulty
    text: str
    fill: Callable[[Draw], Drawn]


@dataclass
class Topic:
    """Collects the schemas of one module."""

    name: str
    schemas: list[Schema] = field(default_factory=list)

    def __call__(
        self, difficulty: Difficulty, text: str
    ) -> Callable[[Callable[[Draw], Drawn]], Callable[[Draw], Drawn]]:
        """Decorate the function that draws numbers for the text's gaps and gives the answer."""

        def add(fill: Callable[[Draw], Drawn]) -> Callable[[Draw], Drawn]:
            self.schemas.append(Schema(fill.__name__.replace("_", "-"), self.name, difficulty, text, fill))
            return fill

        return add


def decimal(value: Fraction) -> str:
    """A fraction with a finite decimal expansion, written as one: `decimal(Fraction(5, 4)) == "1.25"`."""
    for digits in range(10):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            text = str(abs(scaled.numerator)).rjust(digits + 1, "0")
            sign = "-" if value < 0 else ""
            return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)
    raise ValueError(f"{value} has no short decimal expansion")


def dollars(cents: int) -> str:
    """An amount as shops write it: `dollars(450) == "4.50"`."""
    return f"{cents // 100}.{cents % 100:02d}"


def written(answer: Answer) -> str:
    """The answer as `expected_answer` holds it: digits, a LaTeX fraction, or the text itself."""
    if isinstance(answer, Fraction):
        return (
            str(answer.numerator)
            if answer.denominator == 1
            else rf"\frac{{{answer.numerator}}}{{{answer.denominator}}}"
        )
    return str(answer)
