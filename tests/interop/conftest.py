"""Runs of ours to export, and what two stores hold of a run."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.evaluate import evaluate
from gymflow.contracts.run import RunConfig
from gymflow.errors import RunIncomplete
from gymflow.interop.exchange import export_run, import_file
from gymflow.registry import Registry
from gymflow.store import Store

Held = dict[str, Any]


def held(store: Store, run_id: str) -> Held:
    """All that a store holds of a run, as plain values."""
    reader = store.run(run_id)
    indices = [row.plan_index for row in reader.plan()]
    return {
        "document": reader.document.model_dump(mode="json"),
        "tasks": [task.model_dump(mode="json") for task in reader.tasks()],
        "plan": [row.model_dump(mode="json") for row in reader.plan()],
        "sets": [one.model_dump(mode="json") for one in reader.verdict_sets],
        "records": [
            record.model_dump(mode="json")
            for record in sorted(reader.records(indices), key=lambda record: record.rollout.plan_index)
        ],
        "verdicts": {
            index: sorted((one.model_dump(mode="json") for one in found), key=lambda one: one["verdict_set"])
            for index, found in sorted(reader.verdicts_of(indices).items())
        },
        "artifacts": sorted(path.name for path in store.layout.artifacts.rglob("*") if path.is_file()),
    }


@pytest.fixture(scope="session")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, RunConfig], Store]]:
    """`play(name, config)`: a store with the run `r`, made once a session for each name."""
    stores: dict[str, Store] = {}

    def once(name: str, config: RunConfig) -> Store:
        if name not in stores:
            root = tmp_path_factory.mktemp("exchange") / "store"
            with contextlib.suppress(RunIncomplete), asyncio.Runner() as runner:
                runner.run(evaluate(config, "r", str(root)))
            stores[name] = Store(root)
        return stores[name]

    yield once


@pytest.fixture
def played(store: Path, home: Path) -> Callable[[RunConfig], Awaitable[Store]]:
    """`await played(config)`: a store with the run `r`."""

    async def play(config: RunConfig) -> Store:
        try:
            await evaluate(config, "r", str(store))
        except RunIncomplete:
            pass
        return Store(store)

    return play


@pytest.fixture
def round_trip(tmp_path: Path) -> Callable[[Store, str], Awaitable[tuple[Held, Held]]]:
    """What a run is before it is exported in a format, and after it was imported into another store."""

    async def travel(store: Store, format: str, output: str = "out.jsonl") -> tuple[Held, Held]:
        place = tmp_path / "exported" / output
        export_run(store, "r", format, place)
        other = Store(tmp_path / "other")
        report = await import_file(other, place, format, Registry())
        assert report.run_id == "r"
        before, after = held(store, "r"), held(other, "r")
        kept = set(after["artifacts"])
        before["artifacts"] = [digest for digest in before["artifacts"] if digest in kept]
        return before, after

    return travel
