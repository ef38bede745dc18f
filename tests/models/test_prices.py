"""What calls cost; what is unknown stays unknown."""

import json
from pathlib import Path

import pytest

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.models.prices import Price, load_prices, price_of, priced

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
    assert Price(**listed, reasoning=0).cost(usage) == pytest.approx(fault["expected"]["cost_usd"])


def test_usage_that_was_not_reported_gives_no_cost():
    assert Price(1, 1, 1, 1, 1).cost(Usage(prompt_tokens=5)) is None


def test_a_price_belongs_to_the_host_that_serves_the_model():
    listed = price_of(ModelSpec(model="gpt-4o-mini", provider="openai"))
    assert listed is not None
    assert price_of(ModelSpec(model="gpt-4o-mini-2024-07-18", provider="openai")) == listed
    assert price_of(ModelSpec(model="gpt-4o-mini", base_url="https://api.openai.com/v1")) == listed
    assert price_of(ModelSpec(model="gpt-4o-mini", base_url="http://localhost:8000/v1")) is None
    assert price_of(ModelSpec(model="gpt-99", provider="openai")) is None


def test_the_embedded_model_costs_nothing_which_is_known():
    assert price_of(ModelSpec(provider="embedded")) == Price(0, 0, 0, 0, 0)


def test_a_price_of_ones_own_wins_and_is_checked():
    own = ModelSpec(model="x", parameters={"price": {"input": 3, "output": 4}})
    assert price_of(own) == Price(3, 4, 3, 3, 4)
    with pytest.raises(InputError, match="needs `input` and `output`"):
        price_of(ModelSpec(model="x", parameters={"price": {"in": 3, "output": 4}}))


def test_reasoning_may_have_a_price_of_its_own():
    usage = Usage(prompt_tokens=0, completion_tokens=100, reasoning_tokens=80)
    listed = price_of(ModelSpec(model="x", parameters={"price": {"input": 0, "output": 10, "reasoning": 5}}))
    assert listed is not None
    assert listed.cost(usage) == pytest.approx((20 * 10 + 80 * 5) / 1e6)
    plain = price_of(ModelSpec(model="x", parameters={"price": {"input": 0, "output": 10}}))
    assert plain is not None
    assert plain.cost(usage) == pytest.approx(100 * 10 / 1e6)


def test_a_file_prices_models_by_host_provider_or_anywhere(tmp_path):
    file = tmp_path / "prices.yaml"
    file.write_text(
        "inference.local: {llama: {input: 1, output: 2, as_of: 2026-01}}\n"
        "'*': {llama: {input: 3, output: 4}}\n"
        "openai: {'*': {input: 5, output: 6}}\n"
    )
    table = load_prices(file)
    specs = {
        1: ModelSpec(model="llama", base_url="http://inference.local:8000/v1"),
        3: ModelSpec(model="llama", base_url="http://other:8000/v1"),
        5: ModelSpec(model="gpt-5", provider="openai"),
        7: ModelSpec(model="llama", parameters={"price": {"input": 7, "output": 8}}),
    }
    for price, spec in specs.items():
        found = price_of(priced(spec, table))
        assert found is not None and found.input == price
    assert price_of(priced(ModelSpec(model="x", base_url="http://other/v1"), table)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "expected a host"),
        ("a: 3", "expected a host.*'a'"),
        ("a: {m: {input: 1}}", "a, m: a price needs `input` and `output`"),
        ("a: {m: {input: 1, output: 2, cached: 3}}", "a price has no 'cached'"),
        ("a: {m: {input: 1, output: -2}}", "`output` is a price in US dollars per million tokens, not -2"),
        ("a: {m: {input: .nan, output: 2}}", "`input` is a price"),
        ("a: {m: {input: free, output: 2}}", "`input` is a price.*'free'"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_file_of_prices_that_makes_no_sense_is_refused(tmp_path, text, words):
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=words) as refused:
        load_prices(file)
    assert str(file) in str(refused.value)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml cannot be read"):
        load_prices(tmp_path / "nowhere.yaml")
