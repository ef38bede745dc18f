"""What rescoring reads: every completed rollout once, with its own task, wherever it lies and whatever else is stored."""

import random
from typing import Any

import pyarrow.parquet as pq
import pytest

from gymflow.contracts.outcome import Status
from gymflow.store import Store
from gymflow.store import plan as plans
from gymflow.store.files import Files
from gymflow.store.planned import GROUPS_KEPT, Rows, TaskTable

COUNT = 60


@pytest.fixture
def narrow_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_GROUP_BYTES", 600)


@pytest.mark.parametrize("finished", [False, True])
async def test_completed_rollouts_come_once_with_their_own_task(
    store: Store, build: Any, small_journal: None, narrow_groups: None, finished: bool
) -> None:
    build.run(store, "r", COUNT)
    order = random.Random(1).sample(range(COUNT), COUNT)
    failed, again = set(order[:20]), set(order[:10])
    async with store.writer("r") as writer:
        for index in order:
            await writer.commit(build.record("r", index, status=Status.FAILED if index in failed else Status.COMPLETED))
            await writer.roll()
        for index in sorted(again):
            await writer.commit(build.record("r", index, text=f"again {index}"))
        if finished:
            await writer.finish()
    reader = store.run("r")
    found = {one.plan_index: one for batch in reader.stored(batch_size=7) for one in batch}
    assert sum(map(len, reader.stored(batch_size=7))) == len(found)
    assert found.keys() == reader.completed_indices() == set(range(COUNT)) - (failed - again)
    for index, one in found.items():
        assert (one.task_index, one.task_id, one.agent, one.environment) == (index, f"q{index}", "policy", "mcqa")
        assert one.task["question"] == f"question {index}"
        assert one.evidence_digest == f"evidence{index}"
        assert one.evidence.final_text == (f"again {index}" if index in again else "The answer is (A).")


async def test_the_next_sequence_number_is_the_state_s(store: Store, build: Any, small_journal: None) -> None:
    build.run(store, "r", 8)
    reader = store.run("r")
    assert reader.next_seq() == reader.state().next_seq == 0
    async with store.writer("r") as writer:
        for index in range(8):
            await writer.commit(build.record("r", index))
            assert reader.next_seq() == reader.state().next_seq == index + 1
            await writer.roll()
        await writer.finish()
    assert reader.next_seq() == reader.state().next_seq == 8


def test_tasks_are_looked_up_in_any_order(store: Store, build: Any, narrow_groups: None) -> None:
    build.run(store, "r", COUNT)
    layout = store.run("r").layout
    groups = pq.read_metadata(layout.tasks).num_row_groups
    assert GROUPS_KEPT < groups < COUNT
    tasks = TaskTable(layout)
    for index in random.Random(1).choices(range(COUNT), k=5 * COUNT):
        assert tasks[index]["question"] == f"question {index}"
    with pytest.raises(KeyError):
        tasks[COUNT]


def test_what_is_replaced_is_still_read_as_it_was(store: Store, build: Any, narrow_groups: None) -> None:
    build.run(store, "r", 20)
    layout = store.run("r").layout
    rows = Rows(layout.plan, "plan_index", ["task_id", "rollout_key"])
    plans.extend_plan(layout, "r", map(build.task, range(40)), map(build.planned, range(20, 40)), Files())
    assert [rows[index] for index in range(20)] == [(f"q{index}", f"key{index}") for index in range(20)]
    with pytest.raises(KeyError):
        rows[20]
    assert Rows(layout.plan, "plan_index", ["task_id"])[39] == ("q39",)


def test_row_groups_are_limited_by_what_their_rows_take(store: Store, build: Any) -> None:
    long = "x" * 100_000
    tasks = (build.task(index, {"question": long}) for index in range(100))
    store.create_run(build.document("r"), tasks, map(build.planned, range(100)))
    metadata = pq.read_metadata(store.run("r").layout.tasks)
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [41, 41, 18]
