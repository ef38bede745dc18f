"""The whole runner dies at every durable write in turn and is resumed: what it acknowledged is kept, and nothing is sampled twice.

The child is forked after the imports; what it acknowledges (a rollout is counted as done) it tells through a pipe.
"""

import asyncio
from pathlib import Path

import pytest

from flows.evaluate import evaluate
from gymflow.contracts.rollout import RolloutRecord
from gymflow.errors import RunIncomplete
from gymflow.runtime.progress import Progress
from gymflow.store import Store, connect
from tests.store.conftest import dying_at
from tests.store.test_crash import in_child
from tests.support.runs import scripted

CONFIG = scripted(
    environments=[{"name": "mcqa", "limit": 3}],
    repeats=2,
    rules=[{"text": "The answer is (A).", "delay_s": 0.01}],
    limits={"concurrency": 1, "chunk_size": 2},
)
ROLLOUTS = 6


def play(root: Path, nth: int | None, acknowledge) -> None:
    """One evaluation in this process, which ends at the n-th durable write."""
    import gymflow.store.catalog as catalog

    count = Progress.count

    def counted(progress: Progress, record: RolloutRecord, verdict) -> None:
        count(progress, record, verdict)
        acknowledge(record.rollout.plan_index)

    Progress.count = counted  # type: ignore[method-assign]
    if nth is not None:
        catalog.Files = lambda: dying_at(nth)  # type: ignore[assignment,misc]
    try:
        asyncio.run(evaluate(CONFIG, "r", str(root), None))
    except RunIncomplete:
        raise AssertionError("nothing fails here, so nothing may be missing") from None


def stored(root: Path) -> dict[int, float]:
    """Plan index -> when it was sampled, of every durable rollout."""
    if not Store(root).runs():
        return {}
    with connect(root) as connection:
        rows = connection.execute(
            "select plan_index, started_at, reward is not null from rollouts left join verdicts using (run_id, rollout_id) "
            "where status = 'completed'"
        ).fetchall()
    assert len(rows) == len({index for index, _, _ in rows}), "a rollout is there twice"
    assert all(scored for _, _, scored in rows), "a rollout lost its verdict"
    return {index: started for index, started, _ in rows}


@pytest.mark.slow
def test_a_runner_killed_at_any_durable_write_is_resumed_without_loss_or_repetition(tmp_path, home, monkeypatch):
    monkeypatch.setattr("gymflow.store.journal.SPACING_S", 0.0)
    asyncio.run(evaluate(CONFIG, "warm", str(tmp_path / "warm"), None))  # so that the children import nothing
    nth, finished, interrupted = 0, False, 0
    while not finished:
        nth += 1
        root = tmp_path / str(nth)
        status, acknowledged = in_child(lambda acknowledge, root=root, nth=nth: play(root, nth, acknowledge))
        finished = status == 0
        before = stored(root)
        assert set(acknowledged) <= set(before)
        interrupted += 0 < len(before) < ROLLOUTS
        status, _ = in_child(lambda acknowledge, root=root: play(root, None, acknowledge))
        assert status == 0
        after = stored(root)
        assert len(after) == ROLLOUTS
        assert before.items() <= after.items()
    assert interrupted >= 5, "the loop hardly cut a run in its middle"
