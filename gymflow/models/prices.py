"""What a call costs. An unknown price gives an unknown cost, never zero."""

from dataclasses import dataclass
from functools import cache
from re import fullmatch
from typing import Any
from urllib.parse import urlsplit

import yaml

from gymflow.contracts.model import ModelSpec
from gymflow.contracts.trajectory import Usage
from gymflow.errors import InputError
from gymflow.paths import data_dir


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Cached and cache-written prompt tokens have prices of their own."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call. `prompt_tokens` counts cached and cache-written tokens too; None if usage is unknown."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        plain = max(0, usage.prompt_tokens - read - written)
        return (
            plain * self.input
            + read * self.cache_read
            + written * self.cache_write
            + usage.completion_tokens * self.output
        ) / 1e6


def price_of(spec: ModelSpec) -> Price | None:
    """The price from the model's own `parameters.price`, else from `data/prices.yaml` for the host it is served by."""
    own = spec.parameters.get("price")
    if own is not None:
        return _price(own, f"price of model {spec.model!r}")
    host = urlsplit(spec.base_url).hostname if spec.base_url else spec.provider
    listed = _table().get(host or "", {})
    # A dated snapshot costs what its undated name does.
    dated = fullmatch(r"(.+?)-(?:\d{8}|\d{4}-\d\d-\d\d)", spec.model)
    entry = listed.get(spec.model) or (listed.get(dated.group(1)) if dated else None) or listed.get("*")
    return _price(entry, f"prices.yaml, {host}") if entry else None


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = yaml.safe_load((data_dir() / "prices.yaml").read_text(encoding="utf-8"))
    return table


def _price(entry: Any, where: str) -> Price:
    fields = {"input", "output", "cache_read", "cache_write", "as_of"}
    if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys() <= fields:
        raise InputError(
            f"{where}: needs `input` and `output`, may have `cache_read` and `cache_write` ($ per million tokens)"
        )
    plain = float(entry["input"])
    return Price(
        input=plain,
        output=float(entry["output"]),
        cache_read=float(entry.get("cache_read", plain)),
        cache_write=float(entry.get("cache_write", plain)),
    )
