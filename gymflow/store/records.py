"""Records out of table rows: the way back from `tables`."""

from collections.abc import Callable, Iterable
from typing import Any

from gymflow.contracts.rollout import RolloutRecord
from gymflow.contracts.trajectory import ModelCall
from gymflow.contracts.verdict import VerdictRecord
from gymflow.store.encoding import ARTIFACT, loads, resolve

USAGE = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens")

Values = dict[str, Any]
ReadArtifact = Callable[[str], bytes]

_STORE_COLUMNS = {"seq", "attempts", "flags", *USAGE}
_TOKEN_COLUMNS = (
    "chained",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "logprobs_mode",
    "break_at",
    "break_before",
    "break_after",
    "tokenizer_digest",
    "weight_version",
)


def record_of(
    rollout: Values,
    attempts: Iterable[Values],
    evidence: Values,
    calls: Iterable[Values],
    tokens: Iterable[Values],
    read: ReadArtifact,
) -> RolloutRecord:
    """One rollout from its rows of each table, artifacts put back in."""
    flags = rollout["flags"] or ()
    tokens_of = {row["call"]: {name: row[name] for name in _TOKEN_COLUMNS} for row in tokens}
    value = {
        "rollout": {k: v for k, v in rollout.items() if k not in _STORE_COLUMNS} | {"usage": _usage(rollout)},
        "evidence": {
            name: parsed(evidence[name], flags) for name in ("trajectory", "response", "snapshot", "artifacts")
        },
        "model_calls": [_call(row, tokens_of.get(row["call"]), flags) for row in sorted(calls, key=_call_order)],
        "attempts": [
            {name: row[name] for name in ("failure", "message", "started_at", "duration_s")}
            for row in sorted(attempts, key=lambda row: int(row["attempt"]))
        ],
    }
    return RolloutRecord.model_validate(resolve(value, read) if ARTIFACT in flags else value)


def record_of_line(line: Values, read: ReadArtifact) -> RolloutRecord:
    """The same from a parsed journal line."""
    value = line["record"]
    return RolloutRecord.model_validate(resolve(value, read) if ARTIFACT in line["flags"] else value)


def verdict_of(row: Values, read: ReadArtifact) -> VerdictRecord:
    """A verdict from its row."""
    flags = row["flags"] or ()
    said = None
    if row["reward"] is not None:
        said = {name: row[name] for name in ("reward", "extracted_answer", "reason", "masked")}
        components = parsed(row["components"], flags) or {}
        # A component that was not finite is null in the store; the contract knows numbers only.
        said["components"] = {name: value for name, value in components.items() if value is not None}
        said["anchors"] = parsed(row["anchors"], flags) or []
        said["details"] = parsed(row["details"], flags) or {}
    value = {
        **{name: row[name] for name in ("run_id", "rollout_id", "verdict_set", "verdict_key", "passed", "duration_s")},
        **{name: row[name] for name in ("failure", "failure_message")},
        "verdict": said,
        "judged": {
            "verifier": row["verifier"],
            "version": row["verifier_version"],
            "code_digest": row["code_digest"],
            "parameter_digest": row["parameter_digest"],
            "judge": parsed(row["judge"], flags),
        },
        "calls": parsed(row["calls"], flags) or [],
    }
    return VerdictRecord.model_validate(resolve(value, read) if ARTIFACT in flags else value)


def parsed(text: str | None, flags: Iterable[str]) -> Any:
    """A JSON column's value."""
    return None if text is None else loads(text, tuple(flags))


def _usage(row: Values) -> Values:
    return {name: row[name] for name in USAGE}


def _call_order(row: Values) -> int:
    return int(row["call"])


def _call(row: Values, tokens: Values | None, flags: Iterable[str]) -> Values:
    kept = {name: value for name, value in row.items() if name in ModelCall.model_fields}
    for name in ("new_input", "parameters", "output"):
        kept[name] = parsed(row[name], flags)
    return kept | {"index": row["call"], "usage": _usage(row), "tokens": tokens}
