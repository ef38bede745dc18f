"""The cost side of a profile: tokens, turns, tools, latency and money."""

from collections import defaultdict
from importlib.resources import files
from typing import Any

import duckdb

from gymflow.contracts.profile import Costs, Quantiles, TokenUse, ToolUse
from gymflow.metrics.summaries import rows
from gymflow.store.memory import release

Key = tuple[str, str]
NONE = Quantiles(count=0, mean=None, p50=None, p90=None, p99=None, max=None)


def costs_of(
    connection: duckdb.DuckDBPyConnection, run_id: str, pass_rates: dict[Key, float | None]
) -> dict[Key, Costs]:
    """Costs by environment and agent. `pass_rates`: the share that passes, to price a solved task."""
    parameters = {"run_id": run_id}
    totals = {_key(row): row for row in rows(connection, _sql("costs"), parameters)}
    release(connection)
    calls = {_key(row): row for row in rows(connection, _sql("calls"), parameters)}
    tools: dict[Key, list[ToolUse]] = defaultdict(list)
    if any(row["tool_calls"]["max"] for row in totals.values()):  # or the evidence need not be read
        for row in rows(connection, _sql("tools"), parameters):
            tools[_key(row)].append(
                ToolUse(
                    name=row["name"],
                    calls=row["calls"],
                    errors=row["errors"],
                    error_rate=row["errors"] / row["calls"],
                    latency_s=_quantiles(row["latency_s"]),
                )
            )
    release(connection)
    return {key: _costs(totals.get(key), calls.get(key), tools[key], rate) for key, rate in pass_rates.items()}


def _costs(
    total: dict[str, Any] | None, calls: dict[str, Any] | None, tools: list[ToolUse], pass_rate: float | None
) -> Costs:
    count = total["rollouts"] if total else 0
    priced = total["priced"] if total else 0
    spent = total["cost_usd"] if total else None
    tokens = total["tokens_per_rollout"] if total else None
    reasons = []
    if not count:
        reasons.append("no rollout is stored")
    elif priced < count:
        reasons.append(f"{count - priced} of {count} rollouts have no known price" if priced else "no price is known")
    if count and not pass_rate:
        reasons.append("nothing is solved" if pass_rate == 0 else "nothing is scored")
    return Costs(
        rollouts=count,
        reused=total["reused"] if total else 0,
        tokens={
            kind: TokenUse(
                total=None if tokens_of is None else int(tokens_of),
                per_rollout=None if tokens_of is None else float(tokens_of) / total["reported"][kind],
                reported=total["reported"][kind],
            )
            for kind, tokens_of in total["tokens"].items()
        }
        if total
        else {},
        turns=_quantiles(total and total["turns"]),
        tool_calls=_quantiles(total and total["tool_calls"]),
        tools=tools,
        model_calls=calls["calls"] if calls else 0,
        model_errors=calls["errors"] if calls else 0,
        model_latency_s=_quantiles(calls and calls["latency_s"]),
        first_token_s=_quantiles(calls and calls["first_token_s"]),
        wall_s=_quantiles(total and total["wall_s"]),
        cost_usd=spent,
        cost_per_solved_usd=spent / priced / pass_rate if spent is not None and pass_rate else None,
        tokens_per_solved=tokens / pass_rate if tokens is not None and pass_rate else None,
        reason="; ".join(reasons) or None,
    )


def _quantiles(found: dict[str, Any] | None) -> Quantiles:
    if found is None or not found["count"]:
        return NONE
    p50, p90, p99 = found["q"]
    return Quantiles(count=found["count"], mean=found["mean"], p50=p50, p90=p90, p99=p99, max=found["max"])


def _key(row: dict[str, Any]) -> Key:
    return row["environment"], row["agent"]


def _sql(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()
