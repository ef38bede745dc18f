"""Stores with runs made of arrays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.store import Store
from tests.support.synthetic import write_run


@pytest.fixture
def place(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def stored(place: Store) -> Callable[..., str]:
    """`stored("a", rewards, tags=…)` writes a run and returns its id; see tests/support/synthetic.py."""

    def write(run_id: str, rewards: Any, **options: Any) -> str:
        write_run(place, run_id, rewards, **options)
        return run_id

    return write
