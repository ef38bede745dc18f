"""Where passing and failing repeats of the same task part: the first turn at which they do something else."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import duckdb

from gymflow.contracts.diagnosis import Citation, Divergence

Moves = list[str]

# A move is what a turn did: its tool calls, or `says`; the last move is the answer that was scored.
QUERY = """
with mixed as (
    select task_index, agent from facts.rollouts where outcome = 'scored'
    group by all having bool_or(passed) and not bool_and(passed)
),
chosen as (select f.* from facts.rollouts f join mixed using (task_index, agent) where f.outcome = 'scored'),
acted as (
    select t.rollout_id, t.turn,
           coalesce(string_agg(c.name || '(' || c.arguments || ')', '; ' order by c.position), 'says') as move,
           any_value(c.arguments) filter (c.position = 0) as arguments
    from facts.turns t
    left join facts.tools c on c.rollout_id = t.rollout_id and c.turn = t.turn
    where t.rollout_id in (select rollout_id from chosen)
    group by all
)
select c.task_index, c.agent, c.task_id, c.environment, c.rollout_id, c.passed,
       coalesce(list(a.move order by a.turn) filter (a.move is not null), []) as moves, c.extracted_answer,
       list(a.arguments order by a.turn) as arguments
from chosen c
left join acted a using (rollout_id)
group by all
order by c.task_index, c.agent, c.rollout_id
"""


def divergences(connection: duckdb.DuckDBPyConnection, most: int) -> list[Divergence]:
    """One for each task that passes sometimes, the pair that goes together longest; those that part latest first, at most `most`."""
    found: list[Divergence] = []
    cursor = connection.execute(QUERY)
    for _, repeats in groupby(fetched(cursor), key=lambda row: (row[0], row[1])):
        if one := _closest(list(repeats)):
            found.append(one)
            if len(found) > 2 * most + 100:
                found = sorted(found, key=lambda each: -each.turn)[:most]
    return sorted(found, key=lambda each: -each.turn)[:most]


def cite(connection: duckdb.DuckDBPyConnection, found: list[Divergence]) -> None:
    """Put what these divergences cite to `facts.citations`, under the failing rollout."""
    for one in found:
        for citation in one.citations:
            connection.execute(
                "insert into facts.citations values (?, 'divergence', 0, ?, ?, ?)",
                [one.failing, citation.rollout_id, citation.locator, citation.shows],
            )


def confirmed(connection: duckdb.DuckDBPyConnection, found: list[Divergence]) -> list[Divergence]:
    """Those of which everything that they cite holds."""
    wrong = connection.execute(
        "select rollout_id from facts.checked where cause = 'divergence' and not holds"
    ).fetchall()
    refuted = {rollout_id for (rollout_id,) in wrong}
    return [one for one in found if one.failing not in refuted]


def fetched(cursor: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a result, fetched as they are used."""
    while rows := cursor.fetchmany(1000):
        yield from rows


def _closest(repeats: list[tuple[Any, ...]]) -> Divergence | None:
    best: tuple[int, tuple[Any, ...], tuple[Any, ...]] | None = None
    for passing in (row for row in repeats if row[5]):
        for failing in (row for row in repeats if not row[5]):
            turn = _common(_moves(passing), _moves(failing))
            if best is None or turn > best[0]:
                best = turn, passing, failing
    if best is None:
        return None
    turn, passing, failing = best
    return Divergence(
        citations=[*_shown(passing, turn), *_shown(failing, turn)],
        task_id=passing[2],
        environment=passing[3],
        agent=passing[1],
        passing=passing[4],
        failing=failing[4],
        turn=turn,
        passing_move=_at(_moves(passing), turn),
        failing_move=_at(_moves(failing), turn),
    )


def _shown(row: tuple[Any, ...], turn: int) -> Iterator[Citation]:
    """Whether the rollout passed, and what it did at that turn: the answer, or the first tool call."""
    rollout_id, passed, answer, arguments = row[4], row[5], row[7], row[8]
    yield Citation(rollout_id=rollout_id, locator="verdict/passed", shows=str(passed).lower())
    if turn < len(arguments) and arguments[turn] is not None:
        yield Citation(rollout_id=rollout_id, locator=f"turns/{turn}/tool_calls/0/arguments", shows=arguments[turn])
    elif answer is not None and _at(_moves(row), turn).startswith("answers "):
        yield Citation(rollout_id=rollout_id, locator="verdict/extracted_answer", shows=answer)


def _moves(row: tuple[Any, ...]) -> Moves:
    moves, answer = row[6], row[7]
    return [*moves[:-1], f"answers {answer}"] if answer is not None and moves and moves[-1] == "says" else moves


def _common(one: Moves, other: Moves) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _at(moves: Moves, turn: int) -> str:
    return moves[turn][:300] if turn < len(moves) else "ends"
