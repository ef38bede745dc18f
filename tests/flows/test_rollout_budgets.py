"""The budgets of one rollout: each ends it with its own stop reason, and what it did until then is scored."""

import pytest

from tests.support.runs import scripted

CALLS = [{"name": "calculate", "arguments": {"a": 1, "op": "+", "b": 1}}]
USAGE = {"prompt_tokens": 90, "completion_tokens": 10}
PRICE = {"input": 1, "output": 1}


@pytest.fixture
def health() -> bool:
    """No test here is about the examination of a run."""
    return False


@pytest.mark.parametrize(
    ("budgets", "reason", "turns"),
    [
        ({"max_turns": 2}, "max_turns", 2),
        ({"max_calls": 3}, "call_budget", 3),
        ({"max_tokens": 150}, "token_budget", 2),
        ({"max_cost_usd": 0.00015}, "cost_budget", 2),
        ({"wall_time_s": 0.8}, "wall_time", None),
    ],
)
async def test_a_used_up_budget_ends_the_rollout(run, rows, budgets, reason, turns):
    rule = {"tool_calls": CALLS, "usage": USAGE} | ({"delay_s": 0.3} if "wall_time_s" in budgets else {})
    config = scripted(environments=[{"name": "arithmetic", "split": "tool", "limit": 1}], budgets=budgets)
    policy = config.models["policy"].model_copy(update={"parameters": {"rules": [rule], "price": PRICE}})
    card = await run(config.model_copy(update={"models": {"policy": policy}}))
    assert (card.lines[0].scored, card.lines[0].failed) == (1, 0)
    [(status, stop, done)] = rows("select status, stop_reason, turns from rollouts")
    assert (status, stop) == ("completed", reason)
    assert done == turns if turns is not None else 1 <= done <= 3
