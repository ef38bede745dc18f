"""What calls cost; what is unknown stays unknown."""

import json
from pathlib import Path

import pytest

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.models.prices import Price, price_of

CASES = Path(__file__).parents[1] / "cases/reported_faults.jsonl"


def test_cached_and_cache_written_tokens_have_their_own_prices():
    rows = (json.loads(line) for line in CASES.read_text().splitlines())
    fault = next(row for row in rows if row["id"] == "mc-cost-cache-tokens")
    counts, listed = fault["input"]["usage"], fault["input"]["price_per_M"]
    usage = Usage(
        prompt_tokens=counts["input"],
        cached_tokens=counts["cache_read"],
        cache_write_tokens=counts["cache_write"],
        completion_tokens=counts["output"],
    )
    assert Price(**listed).cost(usage) == pytest.approx(fault["expected"]["cost_usd"])


def test_usage_that_was_not_reported_gives_no_cost():
    assert Price(1, 1, 1, 1).cost(Usage(prompt_tokens=5)) is None


def test_a_price_belongs_to_the_host_that_serves_the_model():
    listed = price_of(ModelSpec(model="gpt-4o-mini", provider="openai"))
    assert listed is not None
    assert price_of(ModelSpec(model="gpt-4o-mini-2024-07-18", provider="openai")) == listed
    assert price_of(ModelSpec(model="gpt-4o-mini", base_url="https://api.openai.com/v1")) == listed
    assert price_of(ModelSpec(model="gpt-4o-mini", base_url="http://localhost:8000/v1")) is None
    assert price_of(ModelSpec(model="gpt-99", provider="openai")) is None


def test_the_embedded_model_costs_nothing_which_is_known():
    assert price_of(ModelSpec(provider="embedded")) == Price(0, 0, 0, 0)


def test_a_price_of_ones_own_wins_and_is_checked():
    own = ModelSpec(model="x", parameters={"price": {"input": 3, "output": 4}})
    assert price_of(own) == Price(3, 4, 3, 3)
    with pytest.raises(InputError, match="needs `input` and `output`"):
        price_of(ModelSpec(model="x", parameters={"price": {"in": 3, "output": 4}}))
