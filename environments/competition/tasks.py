"""The task generator: one task a problem, its hidden tests computed by the reference solution."""

from collections.abc import Iterator
from typing import Any

from . import problem
from .problems import (  # noqa: F401  (they register)
    arithmetic,
    arrays,
    graphs,
    greedy,
    networks,
    numbers,
    optimum,
    sequences,
    texts,
    words,
)


def generate() -> Iterator[dict[str, Any]]:
    """Yield the tasks."""
    for one in problem.ALL.values():
        yield {
            "task_id": one.name,
            "question": one.question(),
            "tests": list(one.tests()),
            "tags": [one.topic, one.difficulty, f"template-{one.name}"],
        }
