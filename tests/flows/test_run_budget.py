"""The budget of a whole run: what it bounds, how the run ends, and that a resume with more goes on."""

import pytest

from flows.evaluate import evaluate
from gymflow.analysis.health import last_report
from gymflow.errors import InputError, RunIncomplete
from gymflow.store import Store
from tests.support.runs import scripted

ANSWER = [{"text": "The answer is (A).", "usage": {"prompt_tokens": 90, "completion_tokens": 10}}]


@pytest.mark.parametrize(
    ("budget", "words", "least"),
    [
        ({"max_calls": 3}, r"3 of 3 model calls made \(run_budget.max_calls\)", 3),
        ({"max_tokens": 300}, r"300 of 300 tokens used \(run_budget.max_tokens\)", 3),
        ({"wall_time_s": 0.3}, r"time is over \(run_budget.wall_time_s\)", 0),
    ],
)
async def test_a_used_up_budget_ends_the_run_with_its_reason_and_a_resume_with_more_finishes_it(
    budget, words, least, store, home, rows
):
    slow = [{**ANSWER[0], "delay_s": 0.15}] if "wall_time_s" in budget else ANSWER
    limits = {"concurrency": 1}
    config = scripted(rules=slow, limits=limits, run_budget=budget, environments=[{"name": "mcqa", "limit": 6}])
    with pytest.raises(RunIncomplete, match=words + r".*--resume r"):
        await evaluate(config, "r", str(store), [], health=False, diagnosis=False)
    kept = set(rows("select rollout_id, started_at from rollouts"))
    assert least <= len(kept) < 6
    assert rows("select count(*) from rollouts where status = 'failed'") == [(0,)]
    more = config.model_copy(update={"run_budget": config.run_budget.model_copy(update=dict.fromkeys(budget, 10_000))})
    card = await evaluate(more, "r", str(store), [], health=False, diagnosis=False)
    assert card.lines[0].scored == 6
    assert kept <= set(rows("select rollout_id, started_at from rollouts"))


async def test_what_was_used_before_a_resume_counts(store, home, rows):
    config = scripted(rules=ANSWER, limits={"concurrency": 1}, run_budget={"max_calls": 3})
    for _ in range(2):
        with pytest.raises(RunIncomplete, match="3 of 3 model calls"):
            await evaluate(config, "r", str(store), [], health=False, diagnosis=False)
    assert rows("select count(*) from rollouts") == [(3,)]


async def test_what_a_budget_left_is_examined(store, home):
    config = scripted(rules=ANSWER, limits={"concurrency": 1}, run_budget={"max_calls": 3})
    with pytest.raises(RunIncomplete):
        await evaluate(config, "r", str(store), [], health=True, diagnosis=False)
    report = last_report(Store(store).run("r"))
    assert report is not None and report.missing == report.rollouts - 3


async def test_calls_under_way_are_finished(store, home, rows):
    slow = [{**ANSWER[0], "delay_s": 0.1}]
    config = scripted(rules=slow, limits={"concurrency": 4}, run_budget={"max_calls": 2})
    with pytest.raises(RunIncomplete):
        await evaluate(config, "r", str(store), [], health=False, diagnosis=False)
    assert rows("select count(*) from rollouts where status = 'completed'") == [(2,)]


async def test_a_budget_that_just_suffices_is_no_reason_to_end(store, home):
    config = scripted(rules=ANSWER, run_budget={"max_calls": 4})
    card = await evaluate(config, "r", str(store), [], health=False, diagnosis=False)
    assert card.lines[0].scored == 4


@pytest.mark.parametrize("field", ["budgets", "run_budget"])
async def test_cost_is_not_bounded_where_no_price_is_known(store, home, field):
    config = scripted(
        models={"policy": {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}},
        **{field: {"max_cost_usd": 1}},
    )
    with pytest.raises(InputError, match=rf"{field}.max_cost_usd: no price is known of model 'm'.*--prices"):
        await evaluate(config, "r", str(store), [], health=False, diagnosis=False)
