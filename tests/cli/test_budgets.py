"""Budgets and prices on the command line."""

from pathlib import Path

from tests.support.command import Gym
from tests.support.endpoint import start_endpoint


def test_a_runs_budget_and_a_file_of_prices(here: Gym, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("127.0.0.1: {fake-model: {input: 1000, output: 1000}}\n")
    with start_endpoint(text="The answer is (C).") as endpoint:
        run = [
            "eval",
            "run",
            "mcqa",
            "--limit",
            "6",
            "--concurrency",
            "1",
            "--model",
            "fake-model",
            "--inline",
            "--json",
        ]
        run += ["--base-url", endpoint.url]
        refused = here(*run, "--budget-cost", "1")
        assert refused.code == 2 and "run_budget.max_cost_usd: no price is known of model 'fake-model'" in refused.err
        ended = here(*run, "--budget-calls", "2", "--prices", str(prices))
        assert ended.code == 3 and "2 of 2 model calls made (run_budget.max_calls)" in ended.err
        assert (ended.json[0]["lines"][0]["scored"], endpoint.stats()["requests"]) == (2, 2)
        spent = here("sql", "select sum(cost_usd) as cost from rollouts", "--json").json[0]["cost"]
        assert spent > 0
        resume = ["eval", "run", "--resume", "latest", "--inline", "--json", "--budget-calls", "100"]
        more = here(*resume, "--budget-cost", str(spent * 2))
        assert more.code == 3 and "US dollars spent (run_budget.max_cost_usd)" in more.err
        done = here(*resume, "--budget-cost", "1000")
        assert done.code == 0 and done.json[0]["lines"][0]["scored"] == 6
        assert endpoint.stats()["requests"] == 6


def test_a_file_of_prices_that_is_wrong_is_named(here: Gym, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai: {gpt: {input: 1}}\n")
    ended = here("eval", "run", "mcqa", "--prices", str(prices), "--inline")
    assert ended.code == 2 and f"{prices}, openai, gpt: a price needs" in ended.err
