"""An output that ends in the same words over and over.

severity: warning
applies: calls_hidden or ok_calls > 0
observed: not calls_hidden
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import orjson

from gymflow.analysis.health.thresholds import Thresholds
from gymflow.store import RunReader

TAIL = 1 << 17
"""Characters at the end that are looked at: what is repeated may be pages long."""
PROBE = 24
"""Characters at the very end by which earlier repetitions are found."""
GLANCE = 256
"""Characters that are compared before all are."""
_BATCH = 500

QUERY = """
    select rollout_id, call, output from model_calls
    where run_id = ? and role = 'policy' and status = 'ok' and strlen(output) >= ?
"""


class Loop(NamedTuple):
    """A call that ends in `unit`, `times` times over."""

    rollout_id: str
    call: int
    unit: str
    times: int


def find(
    connection: duckdb.DuckDBPyConnection, reader: RunReader, thresholds: Thresholds
) -> Iterator[tuple[str, None, str, str]]:
    """One finding a call."""
    for loop in loops(connection, reader.run_id, thresholds.repetition_times, thresholds.repetition_chars):
        yield loop.rollout_id, None, f"calls/{loop.call}", f"ends in {loop.unit[:60]!r} {loop.times} times over"


def loops(connection: duckdb.DuckDBPyConnection, run_id: str, times: int, chars: int) -> Iterator[Loop]:
    """All looping calls of the agents of a run. The connection is busy until the last one is taken."""
    cursor = connection.execute(QUERY, [run_id, chars])
    while rows := cursor.fetchmany(_BATCH):
        for rollout_id, call, output in rows:
            for text in strings(orjson.loads(output)):
                if found := repeated_tail(text, times, chars):
                    yield Loop(rollout_id, call, *found)
                    break


def strings(items: Any) -> Iterator[str]:
    """What the model wrote: texts of messages and reasoning, arguments of calls."""
    for item in items if isinstance(items, list) else ():
        for part in (*_parts(item.get("content")), *_parts(item.get("summary"))):
            if isinstance(text := part.get("text"), str):
                yield text
        for name in ("content", "arguments"):
            if isinstance(text := item.get(name), str):
                yield text


def _parts(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def repeated_tail(text: str, times: int, chars: int) -> tuple[str, int] | None:
    """The unit and how often it is there, if the text ends in at least `times` of it over at least `chars` characters.

    The first one may be cut off, as what the last one lacks. The distances at which the last few characters occur before are the
    only periods that there can be.
    """
    tail = text.rstrip()[-TAIL:]
    probe = tail[-PROBE:]
    at = last = len(tail) - len(probe)
    while (at := tail.rfind(probe, 0, at + len(probe) - 1)) >= 0:
        period = last - at
        length = max(chars, period * times)
        if length > len(tail):
            return None
        glance = min(GLANCE, length - period)
        if not tail.endswith(tail[-glance:], 0, last + len(probe) - period):
            continue
        end = tail[-length:]
        if end[period:] == end[:-period]:
            unit = tail[-period:]
            while tail[-length - period : -length] == tail[-length : period - length]:
                length += period
            return unit, length // period
    return None
