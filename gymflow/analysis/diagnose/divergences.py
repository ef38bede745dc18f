"""Where passing and failing repeats of the same task part: the first turn at which they do something else."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import duckdb

from gymflow.contracts.diagnosis import Divergence

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
           coalesce(string_agg(c.name || '(' || c.arguments || ')', '; ' order by c.position), 'says') as move
    from facts.turns t
    left join facts.tools c on c.rollout_id = t.rollout_id and c.turn = t.turn
    where t.rollout_id in (select rollout_id from chosen)
    group by all
)
select c.task_index, c.agent, c.task_id, c.environment, c.rollout_id, c.passed,
       coalesce(list(a.move order by a.turn) filter (a.move is not null), []) as moves, c.extracted_answer
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
        task_id=passing[2],
        environment=passing[3],
        agent=passing[1],
        passing=passing[4],
        failing=failing[4],
        turn=turn,
        passing_move=_at(_moves(passing), turn),
        failing_move=_at(_moves(failing), turn),
    )


def _moves(row: tuple[Any, ...]) -> Moves:
    moves, answer = row[6], row[7]
    return [*moves[:-1], f"answers {answer}"] if answer is not None and moves and moves[-1] == "says" else moves


def _common(one: Moves, other: Moves) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _at(moves: Moves, turn: int) -> str:
    return moves[turn][:300] if turn < len(moves) else "ends"
