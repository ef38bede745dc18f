"""One task a repository: the workspace with the bug, the issue, and the hidden tests."""

from collections.abc import Iterator
from typing import Any

from .repository import repositories

TRAIN_SHARE = 6
"""Every sixth repository belongs to the training split."""


def generate(split: str) -> Iterator[dict[str, Any]]:
    """Yield the tasks of `test` or `train`."""
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r}, expected train or test")
    for number, one in enumerate(repositories().values()):
        if (number % TRAIN_SHARE == TRAIN_SHARE - 1) == (split == "train"):
            yield {
                "task_id": one.name,
                "issue": one.issue,
                "sandbox": {"files": one.broken()},
                "tests": one.tests,
                "tags": [one.topic, one.difficulty, f"template-{one.name}"],
                "cluster": one.name,
            }
