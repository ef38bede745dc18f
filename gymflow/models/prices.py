"""What a call costs. An unknown price gives an unknown cost, never zero."""

from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from re import fullmatch
from typing import Any
from urllib.parse import urlsplit

import yaml

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.paths import data_dir
from gymflow.suggest import did_you_mean

Table = dict[str, dict[str, Any]]
"""Host that serves a model, or provider, or `*` -> served name, or `*` -> price entry."""

FIELDS = ("input", "output", "cache_read", "cache_write", "reasoning")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Cached and cache-written prompt tokens and reasoning have prices of their own."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    reasoning: float

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call; None if usage is unknown. `prompt_tokens` counts cached and cache-written tokens too,
        `completion_tokens` reasoning."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        plain = max(0, usage.prompt_tokens - read - written)
        reasoning = min(usage.reasoning_tokens or 0, usage.completion_tokens)
        return (
            plain * self.input
            + read * self.cache_read
            + written * self.cache_write
            + reasoning * self.reasoning
            + (usage.completion_tokens - reasoning) * self.output
        ) / 1e6


def price_of(spec: ModelSpec) -> Price | None:
    """The price from the model's own `parameters.price`, else from `data/prices.yaml` for the host it is served by."""
    own = spec.parameters.get("price")
    if own is not None:
        return _price(own, f"price of model {spec.model!r}")
    entry = _entry(spec, _shipped())
    return _price(entry, "prices.yaml") if entry else None


def priced(spec: ModelSpec, table: Table) -> ModelSpec:
    """The model with the price that a table lists for it, unless it has one of its own."""
    entry = None if "price" in spec.parameters else _entry(spec, table)
    return spec.model_copy(update={"parameters": {**spec.parameters, "price": entry}}) if entry else spec


def load_prices(file: Path) -> Table:
    """A table of one's own, laid out as `data/prices.yaml`. Raises InputError naming the file and the entry."""
    try:
        table = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not YAML: {error}") from error
    for host, models in (table if isinstance(table, dict) else {"": None}).items():
        if not isinstance(models, dict):
            raise InputError(f"{file}: expected a host, a provider or `*`, and below it prices by model, at {host!r}")
        for model, entry in models.items():
            _price(entry, f"{file}, {host}, {model}")
            entry.pop("as_of", None)
    return {str(host): {str(model): entry for model, entry in models.items()} for host, models in table.items()}


def _entry(spec: ModelSpec, table: Table) -> dict[str, Any] | None:
    host = (urlsplit(spec.base_url).hostname if spec.base_url else spec.provider) or ""
    # A dated snapshot costs what its undated name does.
    dated = fullmatch(r"(.+?)-(?:\d{8}|\d{4}-\d\d-\d\d)", spec.model)
    names = (spec.model, dated.group(1) if dated else spec.model, "*")
    listed = (table.get(place, {}).get(name) for place in (host, "*") for name in names)
    return next((entry for entry in listed if entry), None)


@cache
def _shipped() -> Table:
    table: Table = yaml.safe_load((data_dir() / "prices.yaml").read_text(encoding="utf-8"))
    return table


def _price(entry: Any, where: str) -> Price:
    if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys():
        raise InputError(
            f"{where}: a price needs `input` and `output`, and may have `cache_read`, `cache_write` and `reasoning` "
            "($ per million tokens)"
        )
    for name, value in entry.items():
        if name == "as_of":
            continue
        if name not in FIELDS:
            raise InputError(f"{where}: a price has no {name!r}; {did_you_mean(str(name), FIELDS)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
            raise InputError(f"{where}: `{name}` is a price in US dollars per million tokens, not {value!r}")
    plain, output = float(entry["input"]), float(entry["output"])
    return Price(
        input=plain,
        output=output,
        cache_read=float(entry.get("cache_read", plain)),
        cache_write=float(entry.get("cache_write", plain)),
        reasoning=float(entry.get("reasoning", output)),
    )
