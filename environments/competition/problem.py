"""How a problem is written: a statement, a generator of inputs, and a reference that turns an input into the output.

    @problem("arrays", "easy", STATEMENT, example="2 3", inputs=numbers)
    def add(text: str) -> str:
        a, b = map(int, text.split())
        return str(a + b)

The example's output is worked out by the reference as well and shown in the statement; the hidden tests are its outputs for the
generated inputs. As a program the reference reads standard input and prints what the function returns.
"""

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Difficulty = Literal["easy", "medium", "hard"]
Solution = Callable[[str], str]

T = TypeVar("T")

MAIN = "\n\nimport sys\n\nprint({name}(sys.stdin.read()))\n"


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

    def list(self, count: int, low: int, high: int) -> list[int]:
        """`count` whole numbers from `low` to `high`."""
        return [self(low, high) for _ in range(count)]

    def text(self, count: int, letters: str) -> str:
        """`count` letters."""
        return "".join(self.pick(letters) for _ in range(count))


Inputs = Callable[[Draw, int], str]
"""Draws an input of about the given size; sizes are small, middle and as large as the statement allows."""


@dataclass(frozen=True)
class Problem:
    """One program to write."""

    name: str
    topic: str
    difficulty: Difficulty
    statement: str
    example: str
    reference: Solution
    inputs: Inputs
    sizes: Sequence[int]

    def question(self) -> str:
        """The statement with its example."""
        return f"{self.statement}\n\nExample input:\n{self.example}\n\nExample output:\n{self.reference(self.example)}"

    def tests(self) -> Iterator[dict[str, str]]:
        """Inputs and outputs, small ones first."""
        for index, size in enumerate(self.sizes):
            text = self.inputs(Draw(f"competition {self.name} {index}"), size)
            yield {"input": f"{text}\n", "output": f"{self.reference(text)}\n"}

    def source(self) -> str:
        """The reference as a complete program."""
        lines = inspect.getsource(self.reference).splitlines(keepends=True)
        start = next(number for number, line in enumerate(lines) if line.startswith("def "))
        return "".join(lines[start:]).rstrip() + MAIN.format(name=self.reference.__name__)


ALL: dict[str, Problem] = {}
"""Every problem by name, in the order in which the modules are imported."""

SIZES = (1, 2, 4, 7, 12, 40, 300, 3000)


def problem(
    topic: str, difficulty: Difficulty, statement: str, *, example: str, inputs: Inputs, sizes: Sequence[int] = SIZES
) -> Callable[[Solution], Solution]:
    """Register a reference solution."""

    def add(function: Solution) -> Solution:
        name = function.__name__.replace("_", "-")
        if name in ALL:
            raise ValueError(f"two problems are called {name!r}")
        ALL[name] = Problem(name, topic, difficulty, statement.strip(), example.strip(), function, inputs, sizes)
        return function

    return add
