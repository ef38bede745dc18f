"""Arithmetic on whole numbers: the task family, its split and its reference solutions.

A problem is a triple `(a, op, b)` and a wording turns it into a question. Which split a problem belongs to is decided by a
hash of the problem alone, so a model that was trained on the `train` split has never met a problem of the `test` split, in any
wording. Three wordings of each operation are kept out of the training split as well (tag `new-wording`).

    >>> next(generate("test"))["expected_answer"]
    '174'

Standard library only: the environment loader and the training script of the embedded model both load this file by its path.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """`a op b` for non-negative whole numbers; `op` is one of `+`, `-`, `*`, and `a >= b` for `-`."""

    a: int
    op: str
    b: int


OPERATIONS = {"+": "addition", "-": "subtraction", "*": "multiplication"}
DIFFICULTIES = ("easy", "medium", "hard")
VARIANTS = ("plain", "tool")
HELD_OUT_SHARE = 0.2

_SPOKEN = {"+": "plus", "-": "minus", "*": "times"}

# Wordings by position: the i-th question of each operation. {s} is the sign, {w} the spoken operation.
_COMMON_WORDINGS = (
    "What is {a} {s} {b}?",
    "Compute {a} {w} {b}.",
    "{a} {s} {b} = ?",
    "How much is {a} {w} {b}?",
    "Evaluate {a} {s} {b}.",
    "What does {a} {w} {b} equal?",
    "Work out {a} {s} {b}.",
    "What is {a} {w} {b}?",
    "Calculate {a} {s} {b}.",
    "{a} {w} {b} is what?",
    "Compute {a} {s} {b}.",
    "Please tell me {a} {s} {b}.",
    "How much is {a} {s} {b}?",
    "Find the value of {a} {s} {b}.",
    "Solve this: {a} {s} {b}",
    "I need {a} {w} {b}.",
)
_OWN_WORDINGS = {
    "+": (
        "Add {a} to {b}.",
        "What is the sum of {a} and {b}?",
        "Increase {a} by {b}.",
        "What do you get if you add {b} to {a}?",
        "What is {b} more than {a}?",
        "Find the total of {a} and {b}.",
        "Add {a} and {b}.",
        "Put {a} and {b} together.",
    ),
    "-": (
        "Take {b} away from {a}.",
        "What is the difference between {a} and {b}?",
        "Decrease {a} by {b}.",
        "What do you get if you take {b} from {a}?",
        "What is {b} less than {a}?",
        "Subtract {b} from {a}.",
        "How much larger is {a} than {b}?",
        "What is left of {a} without {b}?",
    ),
    "*": (
        "Multiply {a} by {b}.",
        "What is the product of {a} and {b}?",
        "Scale {a} by {b}.",
        "What do you get if you multiply {a} by {b}?",
        "How much are {a} groups of {b}?",
        "Find the product of {a} and {b}.",
        "What is {a} multiplied by {b}?",
        "How many are {a} rows of {b}?",
    ),
}
# Two wordings that the operations share, then one of their own, so that any few rows show both kinds.
WORDINGS = {
    op: tuple(own[i // 3] if i % 3 == 2 else _COMMON_WORDINGS[i - i // 3] for i in range(24))
    for op, own in _OWN_WORDINGS.items()
}
NEW_WORDINGS = frozenset({8, 14, 19})
"""Positions of the wordings that no training question uses."""

CALCULATOR = {
    "type": "function",
    "name": "calculate",
    "description": "Evaluate a op b for whole numbers a and b.",
    "parameters": {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The left number."},
            "op": {"type": "string", "enum": list(OPERATIONS), "description": "The operation."},
            "b": {"type": "integer", "description": "The right number."},
        },
        "required": ["a", "op", "b"],
        "additionalProperties": False,
    },
    "strict": True,
}
"""The tool that the `tool` variant offers, as a function tool of the Responses API."""


def value(problem: Problem) -> int:
    """The right answer."""
    a, op, b = problem
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    raise ValueError(f"unknown operation {op!r}, expected one of {', '.join(OPERATIONS)}")


def worked(problem: Problem) -> str:
    """The working alone: the problem in signs, then digit by digit from the right; products have no steps.

    Sums write `x+y+carry=s`, differences `x-y-borrow=digit`.
    """
    a, op, b = problem
    steps = [f"{a}{op}{b}:"]
    carry = 0
    for place in range(max(len(str(a)), len(str(b))) if op != "*" else 0):
        x, y = a // 10**place % 10, b // 10**place % 10
        total = x + y + carry if op == "+" else x - y - carry
        shown = total if op == "+" else total % 10
        steps.append(f"{x}{op}{y}{op}{carry}={shown}")
        carry = int(total > 9 or total < 0)
    return " ".join(steps)


def solution(problem: Problem) -> str:
    """A full reference answer: the working, then `Answer: N`."""
    return f"{worked(problem)} Answer: {value(problem)}"


def question(problem: Problem, wording: int) -> str:
    """The question for a problem in one of the 24 wordings of its operation."""
    a, op, b = problem
    return WORDINGS[op][wording].format(a=a, b=b, s=op, w=_SPOKEN[op])


def is_held_out(problem: Problem) -> bool:
    """True if the problem belongs to the `test` split; `a + b` and `b + a` always fall on the same side."""
    a, op, b = problem
    if op != "-" and a > b:
        a, b = b, a
    digest = hashlib.sha256(f"{a} {op} {b}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


def draw(rng: random.Random, op: str, difficulty: str, held_out: bool) -> Problem:
    """A random problem of one split.

    Sums and differences are easy (up to two digits) or medium (three digits); products are medium (one digit by one digit)
    or hard (two digits by one digit).
    """
    while True:
        if op == "*":
            low, high = (10, 99) if difficulty == "hard" else (2, 9)
            a, b = _between(rng, low, high), _between(rng, 2, 9)
            if rng.random() < 0.5:
                a, b = b, a
        else:
            low, high = (100, 999) if difficulty == "medium" else (0, 9) if rng.random() < 0.25 else (10, 99)
            a, b = _between(rng, low, high), _between(rng, low, high)
            if op == "-" and a < b:
                a, b = b, a
        problem = Problem(a, op, b)
        if is_held_out(problem) == held_out:
            return problem


def generate(split: str, variant: str = "plain", count: int = 64, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield `count` task rows of a split (`train` or `test`).

    Row i is the same for every `count`, and both variants ask the same questions. The operations take turns, and every third
    row moves to the next wording, so the first 72 rows of the test split differ in more than their numbers.
    """
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r}, expected train or test")
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}, expected one of {', '.join(VARIANTS)}")
    # Seeded from text, and only random() is drawn: both are guaranteed to be the same in every Python version.
    rng = random.Random(f"arithmetic {split} {seed}")
    wordings = [w for w in range(24) if split == "test" or w not in NEW_WORDINGS]
    asked: set[str] = set()
    for index in range(count):
        op = tuple(OPERATIONS)[index % 3]
        turn = index // 3
        wording = wordings[turn % len(wordings)]
        if op == "*":
            difficulty = "medium" if turn % 4 == 3 else "hard"
        else:
            difficulty = "easy" if (turn % 2 == 0) == (op == "+") else "medium"
        problem = draw(rng, op, difficulty, held_out=split == "test")
        for _ in range(20):
            if question(problem, wording) not in asked:
                break
            problem = draw(rng, op, difficulty, held_out=split == "test")
        else:  # the small numbers are used up: ask a bigger one rather than the same one again
            difficulty = "hard" if op == "*" else "medium"
            while question(problem, wording) in asked:
                problem = draw(rng, op, difficulty, held_out=split == "test")
        asked.add(question(problem, wording))
        yield _row(f"{split}-{variant}-{seed}-{index:04d}", problem, wording, difficulty, variant)


def _row(task_id: str, problem: Problem, wording: int, difficulty: str, variant: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {"input": [{"role": "user", "content": question(problem, wording)}]}
    if variant == "tool":
        parameters["tools"] = [CALCULATOR]
    tags = [OPERATIONS[problem.op], difficulty, f"template-{wording:02d}"]
    if wording in NEW_WORDINGS:
        tags.append("new-wording")
    return {
        "task_id": task_id,
        "responses_create_params": parameters,
        "expected_answer": str(value(problem)),
        "tags": tags,
    }


def _between(rng: random.Random, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(rng.random() * (high - low + 1))
