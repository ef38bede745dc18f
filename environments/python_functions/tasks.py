"""The task generator: one task a problem, its hidden tests computed by the reference solution."""

from collections.abc import Iterator
from typing import Any

from . import problem
from .problems import choices, dates, grids, lists, numbers, parsing, records, strings  # noqa: F401  (they register)

TRAIN_SHARE = 6
"""Every sixth problem belongs to the training split."""


def generate(split: str) -> Iterator[dict[str, Any]]:
    """Yield the tasks of `test` or `train`."""
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r}, expected train or test")
    for number, one in enumerate(problem.ALL.values()):
        if (number % TRAIN_SHARE == TRAIN_SHARE - 1) == (split == "train"):
            yield {
                "task_id": one.name,
                "question": one.stub(),
                "entry_point": one.name,
                "cases": one.cases(),
                "tags": [one.topic, one.difficulty, f"template-{one.name}"],
            }
