"""A run's budget: what it can bound, and what was used of it in the processes that worked on the run before."""

from gymflow.contracts.run import RunBudget, RunConfig
from gymflow.errors import InputError
from gymflow.models.gateway import Gateway
from gymflow.models.spending import Spending
from gymflow.store import Store, connect

USED = """
    WITH used AS (
        SELECT model_calls AS calls, prompt_tokens, completion_tokens, cost_usd
        FROM rollouts
        WHERE run_id = $run_id AND sampled_in = $run_id
        UNION ALL
        SELECT 1, prompt_tokens, completion_tokens, cost_usd
        FROM judge_calls
        WHERE run_id = $run_id AND NOT reused
    )
    SELECT
        coalesce(sum(calls), 0)::BIGINT,
        coalesce(sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0)), 0)::BIGINT,
        coalesce(sum(cost_usd), 0)::DOUBLE
    FROM used
"""


def spent_before(store: Store, run_id: str, budget: RunBudget) -> Spending:
    """A run's spending, beginning with what its durable rollouts used; the store is asked only where there is a budget."""
    if budget == RunBudget():
        return Spending(budget)
    with connect(store.root, runs=[run_id]) as connection:
        row = connection.execute(USED, {"run_id": run_id}).fetchone()
    assert row is not None
    return Spending(budget, calls=row[0], tokens=row[1], cost_usd=row[2])


def require_prices(config: RunConfig, gateway: Gateway) -> None:
    """Raises InputError where cost is bounded and what a model costs is not known."""
    bounded = [name for name in ("budgets", "run_budget") if getattr(config, name).max_cost_usd is not None]
    for name, spec in config.models.items() if bounded else ():
        if gateway[name].price is None:
            raise InputError(
                f"{bounded[0]}.max_cost_usd: no price is known of model {spec.model or name!r}, so nobody can say what is spent; "
                f"list it in a file for --prices, or set models.{name}.parameters.price to {{input: …, output: …}}, "
                "in US dollars per million tokens"
            )
