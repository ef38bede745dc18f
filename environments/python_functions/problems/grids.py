"""Problems about grids and boards."""

# mypy: disable-error-code="type-arg"
# (questions show these signatures; `list` reads better there than `list[Any]`)

from ..problem import problem


@problem(
    "grids",
    "easy",
    [([[1, 2, 3], [4, 5, 6]],), ([[1]],), ([[1, 2]],), ([[1], [2]],), ([["a", "b"], ["c", "d"], ["e", "f"]],)],
)
def transpose(rows: list[list]) -> list[list]:
    """Turn the rows of a table into its columns.

    >>> transpose([[1, 2], [3, 4], [5, 6]])
    [[1, 3, 5], [2, 4, 6]]
    """
    return [list(column) for column in zip(*rows, strict=True)]


@problem(
    "grids",
    "hard",
    [
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],),
        ([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]],),
        ([[7]],),
        ([[1, 2], [3, 4]],),
        ([[1], [2], [3]],),
        ([[1, 2, 3]],),
        ([],),
    ],
)
def spiral(rows: list[list[int]]) -> list[int]:
    """The numbers of a table on the way round it from the upper left corner: along the upper edge, down, back along the lower edge, up, and
    so on inwards.

    >>> spiral([[1, 2, 3], [8, 9, 4], [7, 6, 5]])
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    way: list[int] = []
    rest = [list(row) for row in rows]
    while rest:
        way += rest.pop(0)
        rest = [list(column) for column in zip(*rest, strict=True)][::-1]
    return way


@problem(
    "grids",
    "hard",
    [
        (["##..", "#..#", "..##"],),
        ([],),
        (["...."],),
        (["#.#", ".#.", "#.#"],),
        (["###", "#.#", "###"],),
        (["#..#", "#..#", "####"],),
    ],
)
def islands(rows: list[str]) -> int:
    """How many islands a map has. Land is `#`, water is `.`, and pieces of land belong together if they touch along an edge, not just at a
    corner.

    >>> islands(["#.#", "#..", ".##"])
    3
    """
    land = {(y, x) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell == "#"}
    count = 0
    while land:
        count += 1
        ahead = [land.pop()]
        while ahead:
            y, x = ahead.pop()
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if near in land:
                    land.remove(near)
                    ahead.append(near)
    return count


@problem(
    "grids",
    "hard",
    [
        (["S.#", "..#", "#.E"],),
        (["SE"],),
        (["S#E"],),
        (["S..", ".#.", "..E"],),
        (["S.#.", ".##.", "...E"],),
        (["S#.", ".#.", "..#", "#.E"],),
        (["S....", "####.", "E...."],),
    ],
)
def shortest_way(maze: list[str]) -> int | None:
    """The smallest number of steps from S to E in a maze, going up, down, left or right and never through `#`; None if there is no way.

    >>> shortest_way(["S#E", "..."])
    4
    """
    cells = {(y, x): cell for y, row in enumerate(maze) for x, cell in enumerate(row) if cell != "#"}
    reached = {place for place, cell in cells.items() if cell == "S"}
    front, steps = set(reached), 0
    while front:
        if any(cells[place] == "E" for place in front):
            return steps
        near = {(y + dy, x + dx) for y, x in front for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0))}
        front = (near & cells.keys()) - reached
        reached |= front
        steps += 1
    return None


@problem(
    "grids",
    "medium",
    [
        ([".....", "..#..", "..#..", "..#..", "....."],),
        (["....", ".##.", ".##.", "...."],),
        (["###"],),
        ([".#.", "###", ".#."],),
        ([],),
        (["#"],),
    ],
)
def life_step(rows: list[str]) -> list[str]:
    """The next generation in the Game of Life. A living cell (`#`) lives on with two or three living cells among its up to eight neighbours;
    a dead cell (`.`) comes to life with exactly three. Outside the grid everything is dead.

    >>> life_step(["#..", "##.", "..."])
    ['##.', '##.', '...']
    """
    alive = {(y, x) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell == "#"}

    def neighbours(y: int, x: int) -> int:
        return sum((y + dy, x + dx) in alive for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)

    return [
        "".join(
            "#" if neighbours(y, x) == 3 or ((y, x) in alive and neighbours(y, x) == 2) else "."
            for x in range(len(row))
        )
        for y, row in enumerate(rows)
    ]


@problem(
    "grids",
    "medium",
    [
        (["XXX", "OO.", "..."],),
        (["XOX", "OXO", "OXO"],),
        (["O..", "OX.", "OXX"],),
        (["X.O", ".XO", "O.X"],),
        (["...", "...", "..."],),
        (["XXO", "XO.", "O.."],),
        (["OOX", "XXO", "OXX"],),
    ],
)
def winner(board: list[str]) -> str | None:
    """Who has won a game of tic-tac-toe: "X" or "O" for three in a row, a column or a diagonal, None if nobody has. A board that two have won
    is never asked for.

    >>> winner(["X.O", "XO.", "X.."])
    'X'
    """
    lines = [*board, *("".join(column) for column in zip(*board, strict=True))]
    lines += ["".join(board[i][i] for i in range(3)), "".join(board[i][2 - i] for i in range(3))]
    return next((line[0] for line in lines if line in ("XXX", "OOO")), None)


@problem("grids", "easy", [(0,), (1,), (2,), (5,), (10,), (16,)])
def pascal_row(number: int) -> list[int]:
    """A row of Pascal's triangle, in which each number is the sum of the two above it. Row 0 is [1].

    >>> pascal_row(4)
    [1, 4, 6, 4, 1]
    """
    row = [1]
    for _ in range(number):
        row = [left + right for left, right in zip([0, *row], [*row, 0], strict=True)]
    return row


@problem(
    "grids",
    "medium",
    [
        ([[9, 8, 7], [5, 3, 2], [6, 6, 7]],),
        ([[1, 2], [3, 4]],),
        ([[5]],),
        ([[4, 5, 4], [3, 5, 5], [1, 5, 4]],),
        ([[2, 2], [2, 2]],),
        ([[8, 7, 9], [6, 7, 6], [3, 2, 5]],),
    ],
)
def saddle_points(rows: list[list[int]]) -> list[list[int]]:
    """The places [row, column], counted from 0 and in reading order, whose number is at least as large as all others of its row and at most
    as large as all others of its column.

    >>> saddle_points([[3, 1], [5, 4]])
    [[0, 0]]
    """
    columns = list(zip(*rows, strict=True))
    return [
        [y, x]
        for y, row in enumerate(rows)
        for x, number in enumerate(row)
        if number == max(row) and number == min(columns[x])
    ]
