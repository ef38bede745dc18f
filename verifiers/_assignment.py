"""Optimal one-to-one assignment, for matching calls or list elements whose order does not count.

>>> matching([[True, True], [True, False]])
[1, 0]
>>> assignment([[0.5, 1.0], [0.4, 0.8]])
[1, 0]
"""

from collections.abc import Sequence


def matching(edges: Sequence[Sequence[bool]]) -> list[int | None]:
    """A largest matching of rows to columns (Kuhn's augmenting paths): for each row its column, or None."""
    owner: dict[int, int] = {}
    for row in range(len(edges)):
        _augment(row, edges, owner)
    column_of: list[int | None] = [None] * len(edges)
    for column, row in owner.items():
        column_of[row] = column
    return column_of


def _augment(row: int, edges: Sequence[Sequence[bool]], owner: dict[int, int]) -> bool:
    """Find an alternating path from a free row to a free column, breadth first, and flip it."""
    reached_from: dict[int, int] = {}
    queue = [row]
    for current in queue:
        for column, edge in enumerate(edges[current]):
            if not edge or column in reached_from:
                continue
            reached_from[column] = current
            if column in owner:
                queue.append(owner[column])
                continue
            while True:
                holder = reached_from[column]
                previous = next((other for other, owned in owner.items() if owned == holder), None)
                owner[column] = holder
                if previous is None or holder == row:
                    return True
                del owner[previous]
                column = previous
    return False


def assignment(scores: Sequence[Sequence[float]]) -> list[int | None]:
    """For each row the column of an assignment with the largest total (Hungarian method, O(rows² · columns))."""
    if not scores or not scores[0]:
        return [None] * len(scores)
    rows, columns = len(scores), len(scores[0])
    if rows > columns:
        transposed = assignment([[scores[row][column] for row in range(rows)] for column in range(columns)])
        inverse: list[int | None] = [None] * rows
        for column, row in enumerate(transposed):
            if row is not None:
                inverse[row] = column
        return inverse
    row_potential, column_potential = [0.0] * (rows + 1), [0.0] * (columns + 1)
    row_of = [0] * (columns + 1)  # 1-based; 0 is free
    for row in range(1, rows + 1):
        row_of[0] = row
        column = 0
        slack = [float("inf")] * (columns + 1)
        before = [0] * (columns + 1)
        done = [False] * (columns + 1)
        while row_of[column]:
            done[column] = True
            current, step, nearest = row_of[column], float("inf"), 0
            for other in range(1, columns + 1):
                if done[other]:
                    continue
                reduced = -scores[current - 1][other - 1] - row_potential[current] - column_potential[other]
                if reduced < slack[other]:
                    slack[other], before[other] = reduced, column
                if slack[other] < step:
                    step, nearest = slack[other], other
            for other in range(columns + 1):
                if done[other]:
                    row_potential[row_of[other]] += step
                    column_potential[other] -= step
                else:
                    slack[other] -= step
            column = nearest
        while column:
            row_of[column] = row_of[before[column]]
            column = before[column]
    column_of: list[int | None] = [None] * rows
    for column in range(1, columns + 1):
        if row_of[column]:
            column_of[row_of[column] - 1] = column - 1
    return column_of
