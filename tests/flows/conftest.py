"""Runs of the evaluate flow as a plain function, on scripted answers or the stand-in endpoint."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flows.evaluate import evaluate
from gymflow.contracts.report import Scorecard
from gymflow.contracts.run import RunConfig
from gymflow.errors import RunIncomplete
from gymflow.metrics.scorecard import scorecard
from gymflow.store import Store, connect

Evaluated = Callable[..., Awaitable[Scorecard]]


@pytest.fixture
def health() -> bool:
    """Whether runs are examined; a module whose runs end like all others says no."""
    return True


@pytest.fixture
def run(store: Path, home: Path, health: bool) -> Evaluated:
    """`await run(config, run_id)`: the scorecard, also of a run that ended incomplete."""

    async def play(config: RunConfig, run_id: str = "r", accept_drift: list[str] | None = None) -> Scorecard:
        try:
            card: Scorecard = await evaluate(config, run_id, str(store), accept_drift, health=health, diagnosis=False)
        except RunIncomplete:
            return scorecard(Store(store), run_id)
        return card

    return play


@pytest.fixture
def rows(store: Path) -> Callable[[str], list[tuple[Any, ...]]]:
    """Rows of a query over the store."""

    def query(sql: str) -> list[tuple[Any, ...]]:
        with connect(store) as connection:
            return connection.execute(sql).fetchall()

    return query
