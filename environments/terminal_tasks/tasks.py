"""The tasks of this environment: Harbor task folders, every sixth for training."""

from collections.abc import Iterator
from typing import Any

from . import harbor

TRAIN_SHARE = 6


def generate(split: str, folder: str = "tasks") -> Iterator[dict[str, Any]]:
    """Yield the tasks of `test` or `train`."""
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r}, expected train or test")
    for number, row in enumerate(harbor.tasks(folder)):
        if (number % TRAIN_SHARE == TRAIN_SHARE - 1) == (split == "train"):
            yield row
