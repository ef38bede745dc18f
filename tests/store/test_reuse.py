"""Reuse over a store: found by key, copied with its origin."""

from typing import Any

import pytest

from gymflow.contracts.outcome import Status
from gymflow.store import Store, find_completed, reused


async def sampled(store: Store, build: Any, run_id: str, indices: range, finish: bool = True) -> None:
    build.run(store, run_id, 8)
    async with store.writer(run_id) as writer:
        for index in indices:
            await writer.commit(build.record(run_id, index))
        if finish:
            await writer.finish()


async def test_completed_rollouts_of_any_run_are_found_by_key(store: Store, build: Any) -> None:
    await sampled(store, build, "a", range(3))
    await sampled(store, build, "b", range(2, 5), finish=False)
    found = find_completed(store.root, ["key0", "key2", "key4", "key7"])
    assert found == {"key0": ("a", "a-0"), "key2": ("a", "a-2"), "key4": ("b", "b-4")}
    assert find_completed(store.root, []) == {}


async def test_errors_are_never_reused(store: Store, build: Any) -> None:
    build.run(store, "a", 1)
    async with store.writer("a") as writer:
        await writer.commit(build.record("a", 0, status=Status.FAILED))
    assert find_completed(store.root, ["key0"]) == {}


@pytest.mark.parametrize("killed_after", range(9))
async def test_rs_killed_during_reuse(store: Store, build: Any, killed_after: int) -> None:
    await sampled(store, build, "prior", range(8))
    build.run(store, "next", 8)
    for limit in (killed_after, 8):
        reader = store.run("next")
        pending = reader.pending()
        found = find_completed(store.root, [row.rollout_key for row in pending])
        assert len(found) == 8 - len(reader.completed()) or not pending
        prior = store.run("prior")
        async with store.writer("next") as writer:
            for planned in pending[:limit]:
                _, rollout = found[planned.rollout_key]
                record = prior.record(int(rollout.rpartition("-")[2]))
                await writer.commit(reused(record, "next", planned))
    assert len(store.run("next").completed()) == 8
    copied = store.run("next").record(3)
    assert (copied.rollout.run_id, copied.rollout.rollout_id, copied.rollout.sampled_in) == ("next", "next-3", "prior")
    assert copied.evidence == store.run("prior").record(3).evidence
    assert find_completed(store.root, ["key3"]) == {"key3": ("prior", "prior-3")}


async def test_rs_changed_limit_shuffle(store: Store, build: Any) -> None:
    """Exactly the rollouts that both selections ask for are reused; a change of nothing reuses all."""
    await sampled(store, build, "first", range(5))
    assert set(find_completed(store.root, [f"key{index}" for index in (7, 3, 1, 6, 4)])) == {"key1", "key3", "key4"}
    assert len(find_completed(store.root, [f"key{index}" for index in (4, 2, 0, 1, 3)])) == 5
