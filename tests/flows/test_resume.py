"""Going on with a run: what is durable is kept, what is not is run again, and nothing is ever sampled twice."""

import asyncio
from pathlib import Path

import pytest

from gymflow.errors import InputError, RunLocked
from gymflow.store import Store
from tests.support.environments import write_environment
from tests.support.runs import scripted


@pytest.fixture
def health() -> bool:
    """No test here is about the examination of a run."""
    return False


def failing(times: int) -> list[dict]:
    return [
        {"error": {"status": 500, "message": "down", "retryable": False}, "times": times},
        {"text": "The answer is (A)."},
    ]


async def test_a_finished_run_is_not_sampled_again(run, rows):
    await run(scripted())
    before = rows("select rollout_id, started_at from rollouts order by 1")
    await run(scripted())
    assert rows("select rollout_id, started_at from rollouts order by 1") == before


async def test_failed_rollouts_are_run_again_and_the_others_kept(run, rows):
    limits = {"max_attempts": 1}
    first = await run(scripted(rules=failing(2), limits=limits))
    assert first.lines[0].failed == 2
    kept = set(rows("select rollout_id, started_at from rollouts where status = 'completed'"))
    document = rows("select count(*) from plan")
    second = await run(scripted(limits=limits), accept_drift=["model"])
    assert second.lines[0].scored == 4 and second.incomplete == 0
    assert kept <= set(rows("select rollout_id, started_at from rollouts"))
    assert rows("select count(*) from plan") == document


async def test_repeats_may_grow(run, rows):
    await run(scripted(repeats=2))
    before = set(rows("select rollout_key, rollout_id, started_at from rollouts"))
    card = await run(scripted(repeats=5))
    assert card.lines[0].scored == 20
    assert before <= set(rows("select rollout_key, rollout_id, started_at from rollouts"))
    assert rows("select count(distinct rollout_key) from plan") == [(20,)]


async def test_the_selection_may_grow(run, rows):  # rs-changed-limit-shuffle
    await run(scripted(environments=[{"name": "mcqa", "limit": 3}]))
    before = set(rows("select rollout_id, started_at from rollouts"))
    card = await run(scripted(environments=[{"name": "mcqa", "limit": 5}]))
    assert card.lines[0].scored == 5
    assert before <= set(rows("select rollout_id, started_at from rollouts"))
    assert rows("select count(distinct task_index) from tasks") == [(5,)]


async def test_another_sampling_is_refused_by_name(run):
    await run(scripted())
    fields = r"budgets.max_turns 64 -> 3, sampling.temperature None -> 0.5"
    with pytest.raises(InputError, match=rf"another sampling \({fields}\); .*--allow-drift sampling"):
        await run(scripted(sampling={"temperature": 0.5}, budgets={"max_turns": 3}))


async def test_an_accepted_difference_is_recorded(run, store):
    await run(scripted())
    card = await run(scripted(sampling={"temperature": 0.5}, repeats=2), accept_drift=["sampling"])
    assert Store(store).run("r").document.accepted_drift == ["sampling"]
    assert card.incomplete == 0


async def test_a_changed_verifier_starts_a_new_verdict_set(run, rows):
    await run(scripted(repeats=2))
    calls = rows("select count(*) from model_calls")
    lenient = [{"name": "mcqa", "limit": 4, "verifier": {"mode": "lenient"}}]
    card = await run(scripted(repeats=2, environments=lenient))
    assert card.lines[0].scored == 8
    sets = rows("select verdict_set, count(*) from verdicts group by 1")
    assert len(sets) == 2 and {count for _, count in sets} == {8}
    assert rows("select count(*) from model_calls") == calls


async def test_only_one_process_writes_a_run(run, store):
    await run(scripted())
    async with Store(store).writer("r"):
        with pytest.raises(RunLocked):
            await run(scripted(repeats=2))


async def test_reuse_across_the_store_samples_nothing_twice(run, rows):
    policy = {"provider": "scripted", "revision": "1", "parameters": {"rules": [{"text": "The answer is (A)."}]}}
    await run(scripted(models={"policy": policy}, repeats=2), "a")
    card = await run(scripted(models={"policy": policy}, repeats=3, reuse="store"), "b")
    assert card.lines[0].reused == 8 and card.lines[0].scored == 12
    assert rows("select sampled_in, count(*) from rollouts where run_id = 'b' group by 1 order by 1") == [
        ("a", 8),
        ("b", 4),
    ]


async def test_errors_are_never_reused(run, rows):  # ca-errors-not-cached
    policy = {"provider": "scripted", "revision": "1", "parameters": {"rules": failing(4)}, "max_retries": 0}
    await run(scripted(models={"policy": policy}, limits={"max_attempts": 1}), "a")
    card = await run(scripted(models={"policy": policy}, reuse="store", limits={"max_attempts": 1}), "b")
    assert card.lines[0].reused == 0


async def test_reuse_of_a_name_that_may_change_is_refused(run):
    policy = {"provider": "openai", "model": "gpt", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(InputError, match="not pinned"):
        await run(scripted(models={"policy": policy}, reuse="store"))


async def test_cancelling_leaves_a_run_that_can_be_resumed(run, rows):
    slow = [{"text": "The answer is (A).", "delay_s": 0.2}]
    config = scripted(rules=slow, repeats=10, limits={"concurrency": 4})
    playing = asyncio.create_task(run(config))
    await asyncio.sleep(2.0)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    kept = set(rows("select rollout_id, started_at from rollouts"))
    card = await run(config)
    assert card.lines[0].scored == 40
    assert kept <= set(rows("select rollout_id, started_at from rollouts"))


def written(root: Path, name: str, *questions: str) -> None:
    rows = [
        {"task_id": task, "question": question, "answer": answer}
        for task, question, answer in zip("abc", questions, ("yes", "no", "yes"), strict=False)
    ]
    write_environment(root / "environments" / name, rows=rows)


async def test_equal_questions_are_not_planned_anew_when_a_run_grows(run, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("GYMFLOW_PATH", str(tmp_path))
    written(tmp_path, "twins", "the same", "the same", "the same")
    await run(scripted(environments=[{"name": "twins"}]))
    await run(scripted(environments=[{"name": "twins"}], repeats=2))
    assert rows("select count(*), count(distinct rollout_key), count(distinct task_index) from plan") == [(6, 6, 3)]


async def test_an_edited_row_stays_the_task_that_was_planned(run, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("GYMFLOW_PATH", str(tmp_path))
    written(tmp_path, "edited", "Which way?", "Where?")
    await run(scripted(environments=[{"name": "edited"}]))
    written(tmp_path, "edited", "Which way is north?", "Where?")
    card = await run(scripted(environments=[{"name": "edited"}], repeats=2), accept_drift=["dataset"])
    assert (card.lines[0].tasks, card.lines[0].rollouts) == (2, 4)
    assert rows("select count(distinct task_key) from plan") == [(2,)]


@pytest.mark.parametrize(
    ("smaller", "message"),
    [
        ({"repeats": 1}, "repeats can only grow"),
        ({"environments": [{"name": "mcqa", "limit": 2}]}, "selection can only grow"),
    ],
)
async def test_what_is_planned_does_not_shrink(run, rows, smaller, message):
    await run(scripted(repeats=2))
    with pytest.raises(InputError, match=message):
        await run(scripted(**({"repeats": 2} | smaller)))
    assert rows("select count(*) from plan") == [(8,)]


async def test_an_unknown_difference_cannot_be_allowed(run):
    await run(scripted())
    with pytest.raises(InputError, match="did you mean sampling"):
        await run(scripted(), accept_drift=["samplin"])


async def test_splits_of_one_environment_have_limits_of_their_own(run, rows):
    def config(test: int, train: int, **fields):
        chosen = [{"name": "mcqa", "split": "test", "limit": test}, {"name": "mcqa", "split": "train", "limit": train}]
        return scripted(environments=chosen, **fields)

    await run(config(2, 3))
    card = await run(config(2, 3, repeats=2))
    assert [line.rollouts for line in card.lines] == [4, 6]
    with pytest.raises(InputError, match=r"limit 1: the run has the first 2 tasks of mcqa:test"):
        await run(config(1, 3, repeats=2))


async def test_repeats_of_a_benchmark_do_not_shrink_either(run):
    chosen = [{"name": "mcqa", "benchmark": "mcqa-4x", "limit": 2}]
    card = await run(scripted(environments=chosen))
    assert card.lines[0].rollouts == 8
    with pytest.raises(InputError, match="the run has 4 of every task"):
        await run(scripted(environments=chosen, repeats=2))


async def test_a_run_may_get_another_name(run, rows):
    await run(scripted(name="before"))
    card = await run(scripted(name="after"))
    assert card.name == "after" and rows("select name from runs") == [("after",)]
