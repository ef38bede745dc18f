"""The tables: their columns, and how a journal line becomes rows of them.

One function a table, from the parsed line to tuples in the order of the columns. The same functions serve the conversion to
Parquet and whoever reads a journal that is not converted yet, so the two cannot differ.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from gymflow.contracts.base import SCHEMA_VERSION
from gymflow.store.encoding import BIG_INTEGER, dumps_plain, loads

MESSAGE_LIMIT = 500
"""Characters of a failure message in the narrow table; the whole message stands in `attempts`."""

_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_USAGE = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens")
_USAGE_FIELDS = [(name, _INT) for name in _USAGE]

SCHEMAS: dict[str, pa.Schema] = {
    "rollouts": pa.schema(
        [
            ("run_id", _TEXT),
            ("rollout_id", _TEXT),
            ("rollout_key", _TEXT),
            ("plan_index", _INT),
            ("seq", _INT),
            ("task_key", _TEXT),
            ("task_id", _TEXT),
            ("repeat", _INT),
            ("environment", _TEXT),
            ("split", _TEXT),
            ("agent", _TEXT),
            ("model", _TEXT),
            ("seed", _INT),
            ("status", _TEXT),
            ("stop_reason", _TEXT),
            ("failure", _TEXT),
            ("failure_message", _TEXT),
            ("started_at", _FLOAT),
            ("duration_s", _FLOAT),
            ("turns", _INT),
            ("model_calls", _INT),
            ("tool_calls", _INT),
            *_USAGE_FIELDS,
            ("cost_usd", _FLOAT),
            ("attempts", _INT),
            ("sampled_in", _TEXT),
            ("weight_version", _TEXT),
            ("evidence_digest", _TEXT),
            ("flags", pa.list_(_TEXT)),
        ]
    ),
    "attempts": pa.schema(
        [
            ("run_id", _TEXT),
            ("rollout_id", _TEXT),
            ("seq", _INT),
            ("attempt", _INT),
            ("failure", _TEXT),
            ("message", _TEXT),
            ("started_at", _FLOAT),
            ("duration_s", _FLOAT),
        ]
    ),
    "evidence": pa.schema(
        [
            ("run_id", _TEXT),
            ("rollout_id", _TEXT),
            ("plan_index", _INT),
            ("seq", _INT),
            ("flags", pa.list_(_TEXT)),
            ("trajectory", _TEXT),
            ("response", _TEXT),
            ("snapshot", _TEXT),
            ("artifacts", _TEXT),
        ]
    ),
    "model_calls": pa.schema(
        [
            ("run_id", _TEXT),
            ("rollout_id", _TEXT),
            ("seq", _INT),
            ("call", _INT),
            ("role", _TEXT),
            ("invocation", _INT),
            ("turn", _INT),
            ("parent", _INT),
            ("new_input", _TEXT),
            ("instructions", _TEXT),
            ("tools_digest", _TEXT),
            ("parameters", _TEXT),
            ("output", _TEXT),
            ("model", _TEXT),
            ("reported_model", _TEXT),
            ("response_id", _TEXT),
            ("status", _TEXT),
            ("http_status", _INT),
            ("error_kind", _TEXT),
            ("error_message", _TEXT),
            ("finish_reason", _TEXT),
            ("attempts", _INT),
            ("started_at", _FLOAT),
            ("queue_s", _FLOAT),
            ("duration_s", _FLOAT),
            ("first_token_s", _FLOAT),
            *_USAGE_FIELDS,
            ("cost_usd", _FLOAT),
        ]
    ),
    "tokens": pa.schema(
        [
            ("run_id", _TEXT),
            ("rollout_id", _TEXT),
            ("seq", _INT),
            ("call", _INT),
            ("role", _TEXT),
            ("invocation", _INT),
            ("parent", _INT),
            ("chained", _BOOL),
            ("prompt_token_ids", pa.list_(pa.int32())),
            ("completion_token_ids", pa.list_(pa.int32())),
            ("logprobs", pa.list_(_FLOAT)),
            ("logprobs_mode", _TEXT),
            ("break_at", _INT),
            ("break_before", _TEXT),
            ("break_after", _TEXT),
            ("tokenizer_digest", _TEXT),
            ("weight_version", _TEXT),
        ]
    ),
    "verdicts": pa.schema(
        [
            ("run_id", _TEXT),
            ("rollout_id", _TEXT),
            ("verdict_set", _TEXT),
            ("seq", _INT),
            ("verdict_key", _TEXT),
            ("reward", _FLOAT),
            ("passed", _BOOL),
            ("extracted_answer", _TEXT),
            ("reason", _TEXT),
            ("components", _TEXT),
            ("masked", _BOOL),
            ("anchors", _TEXT),
            ("details", _TEXT),
            ("failure", _TEXT),
            ("failure_message", _TEXT),
            ("duration_s", _FLOAT),
            ("verifier", _TEXT),
            ("verifier_version", _TEXT),
            ("code_digest", _TEXT),
            ("parameter_digest", _TEXT),
            ("judge", _TEXT),
            ("calls", _TEXT),
            ("flags", pa.list_(_TEXT)),
        ]
    ),
}

SCHEMAS = {table: schema.with_metadata({"schema_version": str(SCHEMA_VERSION)}) for table, schema in SCHEMAS.items()}

Line = dict[str, Any]
Row = tuple[Any, ...]


class Rows(NamedTuple):
    """Rows of one table that came from the same line."""

    table: str
    rows: Iterable[Row]


def parse_line(line: bytes) -> Line:
    """A journal line. Integers beyond 64 bit come out exactly: the line announces them in its flags."""
    parsed: Line = loads(line, (BIG_INTEGER,) if b'"big_integer"' in line else ())
    return parsed


def _text(value: Any) -> bytes | None:
    if not value and type(value) is dict:
        return b"{}"  # most of what is stored as text is nothing
    return None if value is None else dumps_plain(value)


def _rollouts(line: Line) -> Iterator[Row]:
    rollout = line["record"]["rollout"]
    message = rollout["failure_message"]
    usage = rollout["usage"]
    yield (
        rollout["run_id"],
        rollout["rollout_id"],
        rollout["rollout_key"],
        rollout["plan_index"],
        line["seq"],
        rollout["task_key"],
        rollout["task_id"],
        rollout["repeat"],
        rollout["environment"],
        rollout["split"],
        rollout["agent"],
        rollout["model"],
        rollout["seed"],
        rollout["status"],
        rollout["stop_reason"],
        rollout["failure"],
        message and message[:MESSAGE_LIMIT],
        rollout["started_at"],
        rollout["duration_s"],
        rollout["turns"],
        rollout["model_calls"],
        rollout["tool_calls"],
        *(usage[name] for name in _USAGE),
        rollout["cost_usd"],
        len(line["record"]["attempts"]),
        rollout["sampled_in"],
        rollout["weight_version"],
        rollout["evidence_digest"],
        line["flags"],
    )


def _attempts(line: Line) -> Iterator[Row]:
    rollout = line["record"]["rollout"]
    for number, attempt in enumerate(line["record"]["attempts"]):
        yield (
            rollout["run_id"],
            rollout["rollout_id"],
            line["seq"],
            number,
            attempt["failure"],
            attempt["message"],
            attempt["started_at"],
            attempt["duration_s"],
        )


def _evidence(line: Line) -> Iterator[Row]:
    rollout, evidence = line["record"]["rollout"], line["record"]["evidence"]
    yield (
        rollout["run_id"],
        rollout["rollout_id"],
        rollout["plan_index"],
        line["seq"],
        line["flags"],
        _text(evidence["trajectory"]),
        _text(evidence["response"]),
        _text(evidence["snapshot"]),
        _text(evidence["artifacts"]),
    )


def _model_calls(line: Line) -> Iterator[Row]:
    rollout = line["record"]["rollout"]
    for call in line["record"]["model_calls"]:
        usage = call["usage"]
        yield (
            rollout["run_id"],
            rollout["rollout_id"],
            line["seq"],
            call["index"],
            call["role"],
            call["invocation"],
            call["turn"],
            call["parent"],
            _text(call["new_input"]),
            call["instructions"],
            call["tools_digest"],
            _text(call["parameters"]),
            _text(call["output"]),
            call["model"],
            call["reported_model"],
            call["response_id"],
            call["status"],
            call["http_status"],
            call["error_kind"],
            call["error_message"],
            call["finish_reason"],
            call["attempts"],
            call["started_at"],
            call["queue_s"],
            call["duration_s"],
            call["first_token_s"],
            *(usage[name] for name in _USAGE),
            call["cost_usd"],
        )


def _tokens(line: Line) -> Iterator[Row]:
    rollout = line["record"]["rollout"]
    for call in line["record"]["model_calls"]:
        if (tokens := call["tokens"]) is not None:
            yield (
                rollout["run_id"],
                rollout["rollout_id"],
                line["seq"],
                call["index"],
                call["role"],
                call["invocation"],
                call["parent"],
                tokens["chained"],
                tokens["prompt_token_ids"],
                tokens["completion_token_ids"],
                tokens["logprobs"],
                tokens["logprobs_mode"],
                tokens["break_at"],
                tokens["break_before"],
                tokens["break_after"],
                tokens["tokenizer_digest"],
                tokens["weight_version"],
            )


def _verdicts(line: Line) -> Iterator[Row]:
    flags = line.get("verdict_flags") or [[]] * len(line["verdicts"])
    for record, odd in zip(line["verdicts"], flags, strict=True):
        verdict, judged = record["verdict"], record["judged"]
        said = verdict or {}
        yield (
            record["run_id"],
            record["rollout_id"],
            record["verdict_set"],
            line["seq"],
            record["verdict_key"],
            said.get("reward"),
            record["passed"],
            said.get("extracted_answer"),
            said.get("reason"),
            _text(said.get("components")),
            said.get("masked", False),
            _text(said.get("anchors") or None),
            _text(said.get("details") or None),
            record["failure"],
            record["failure_message"],
            record["duration_s"],
            judged["verifier"],
            judged["version"],
            judged["code_digest"],
            judged["parameter_digest"],
            _text(judged["judge"]),
            _text(record["calls"] or None),
            odd,
        )


_OF_RECORD: dict[str, Callable[[Line], Iterator[Row]]] = {
    "rollouts": _rollouts,
    "attempts": _attempts,
    "evidence": _evidence,
    "model_calls": _model_calls,
    "tokens": _tokens,
}


def rows_of(line: Line, tables: Iterable[str] = SCHEMAS) -> Iterator[Rows]:
    """All rows that a parsed line holds, by table."""
    for table in tables:
        if table == "verdicts":
            yield Rows(table, _verdicts(line))
        elif "record" in line:
            yield Rows(table, _OF_RECORD[table](line))


def to_arrow(table: str, rows: list[Row]) -> pa.Table:
    """Rows as an Arrow table of that table's schema."""
    schema = SCHEMAS[table]
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.table([pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema)
