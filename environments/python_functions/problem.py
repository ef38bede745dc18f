"""How a problem is written: a solved function, whose signature and docstring are the question and whose body is the reference.

    @problem("numbers", "easy", inputs=[(2,), (7,), (0,)])
    def double(number: int) -> int:
        \"\"\"Twice the number.

        >>> double(4)
        8
        \"\"\"
        return 2 * number

The examples in the docstring were worked out by hand; the hidden tests are what the body returns for `inputs`. Arguments and
results are plain JSON values, so that they can be compared outside the process that ran the answer.
"""

import copy
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Difficulty = Literal["easy", "medium", "hard"]


@dataclass(frozen=True)
class Problem:
    """One function to write."""

    name: str
    topic: str
    difficulty: Difficulty
    signature: str
    description: str
    reference: Callable[..., Any]
    inputs: Sequence[tuple[Any, ...]]

    def stub(self) -> str:
        """The signature with the docstring, as the question shows them."""
        return f'{self.signature}\n{textwrap.indent(chr(34) * 3 + self.description, "    ")}\n    """'

    def cases(self) -> list[dict[str, Any]]:
        """Arguments and expected results."""
        return [{"arguments": list(args), "expected": self.reference(*copy.deepcopy(args))} for args in self.inputs]

    def source(self) -> str:
        """The reference as source code without its decorator: a complete answer."""
        lines = inspect.getsource(self.reference).splitlines(keepends=True)
        start = next(number for number, line in enumerate(lines) if line.startswith("def "))
        return "".join(lines[start:])


ALL: dict[str, Problem] = {}
"""Every problem by name, in the order in which the modules are imported."""


def problem(
    topic: str, difficulty: Difficulty, inputs: Sequence[tuple[Any, ...]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a reference solution with the arguments of its hidden tests."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        if name in ALL:
            raise ValueError(f"two problems are called {name!r}")
        signature = f"def {name}{inspect.signature(function)}:"
        ALL[name] = Problem(name, topic, difficulty, signature, inspect.getdoc(function) or "", function, inputs)
        return function

    return add
