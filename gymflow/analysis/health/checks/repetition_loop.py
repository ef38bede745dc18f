"""An output that ends in the same words over and over.

severity: warning
applies: calls_hidden or ok_calls > 0
observed: not calls_hidden
"""

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import orjson

from gymflow.analysis.health.thresholds import Thresholds
from gymflow.store import RunReader

TAIL = 4096
"""Characters at the end that are looked at."""
PACKED = 0.25
"""Text that repeats itself compresses to less than this share; other text is not looked at closer."""
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

    The last one may be cut off. Periods are found with the prefix function (Knuth, Morris, Pratt 1977) of the reversed end.
    """
    tail = text.rstrip()[-TAIL:]
    if len(tail) < chars:
        return None
    end = tail[-max(chars, 512) :].encode()
    if len(zlib.compress(end, 1)) > PACKED * len(end) + 16:
        return None
    back = tail[::-1]
    border = [0] * len(back)
    found = None
    for place in range(1, len(back)):
        length = border[place - 1]
        while length and back[place] != back[length]:
            length = border[length - 1]
        border[place] = length + (back[place] == back[length])
        period = place + 1 - border[place]
        if place + 1 >= chars and (place + 1) // period >= times:
            found = tail[-period:], (place + 1) // period
    return found if found and found[0].strip() else None
