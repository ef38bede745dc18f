"""More problems about networks and grids."""

from ..problem import Draw, problem


def _rivals(draw: Draw, size: int) -> str:
    if draw(0, 1):
        pairs = [(2 * draw(0, (size - 1) // 2) + 1, 2 * draw(1, size // 2)) for _ in range(size)]
    else:
        pairs = [(draw(1, size - 1), size) if n else (1, 2) for n in range(size // 2)]
        pairs += [(draw(1, size), draw(1, size)) for _ in range(size // 2 + 1)]
    pairs = [(a, b) for a, b in pairs if a != b] or [(1, 2)]
    return "\n".join([f"{size} {len(pairs)}", *(f"{a} {b}" for a, b in pairs)])


@problem(
    "graphs",
    "medium",
    """
The first line holds n and m (2 <= n <= 3000, 1 <= m <= 6000), each of the next m lines two different players from 1 to n who do not want to be in the same team. Print
`yes` if the players can be split into two teams so that all are content, otherwise `no`.
""",
    example="4 4\n1 2\n2 3\n3 4\n4 1",
    inputs=_rivals,
    sizes=(2, 3, 4, 5, 6, 7, 8, 9, 10, 40, 300, 3000),
)
def two_teams(text: str) -> str:
    n, _, *numbers = map(int, text.split())
    rivals: list[list[int]] = [[] for _ in range(n + 1)]
    for a, b in zip(numbers[::2], numbers[1::2], strict=True):
        rivals[a].append(b)
        rivals[b].append(a)
    team = [0] * (n + 1)
    for first in range(1, n + 1):
        if team[first]:
            continue
        team[first] = 1
        ahead = [first]
        while ahead:
            player = ahead.pop()
            for other in rivals[player]:
                if team[other] == team[player]:
                    return "no"
                if not team[other]:
                    team[other] = -team[player]
                    ahead.append(other)
    return "yes"


def _tree(draw: Draw, size: int) -> str:
    edges = [(number, draw(max(1, number - 3), number - 1), draw(1, 100)) for number in range(2, size + 1)]
    return "\n".join([str(size), *(f"{a} {b} {c}" for a, b, c in edges)])


@problem(
    "graphs",
    "hard",
    """
n villages are joined by n - 1 paths so that there is exactly one way between any two of them. The first line holds n (1 <= n <= 3000), each of the next n - 1 lines a, b and
c: a path of length c (1 to 1000) between the villages a and b. Print the length of the longest way between two villages.
""",
    example="4\n1 2 3\n2 3 4\n2 4 5",
    inputs=_tree,
)
def longest_way(text: str) -> str:
    n, *numbers = map(int, text.split())
    paths: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    for a, b, length in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        paths[a].append((b, length))
        paths[b].append((a, length))

    def farthest(start: int) -> tuple[int, int]:
        best, ahead = (0, start), [(0, start, 0)]
        while ahead:
            way, village, origin = ahead.pop()
            best = max(best, (way, village))
            ahead += [(way + length, other, village) for other, length in paths[village] if other != origin]
        return best

    return str(farthest(farthest(1)[1])[0])


def _net(draw: Draw, size: int) -> str:
    edges = {(draw(max(1, number - 2), number - 1), number) for number in range(2, size + 1)}
    for _ in range(size // 2):
        first = draw(1, size - 1)
        edges.add((first, min(size, first + draw(1, 3))))
    edges = {(a, b) for a, b in edges if a < b}
    return "\n".join([f"{size} {len(edges)}", *(f"{a} {b}" for a, b in sorted(edges))])


@problem(
    "graphs",
    "hard",
    """
n islands are joined by m bridges so that each can be reached from each; no two bridges join the same islands. The first line holds n and m (2 <= n <= 1000, 1 <= m <= 2000),
each of the next m lines the two islands that a bridge joins. Print how many bridges there are without which some island could no longer be reached from some other one.
""",
    example="5 5\n1 2\n2 3\n1 3\n3 4\n4 5",
    inputs=_net,
    sizes=(2, 3, 4, 5, 7, 9, 12, 40, 300, 1000),
)
def needed_bridges(text: str) -> str:
    import sys

    sys.setrecursionlimit(10000)
    n, _, *numbers = map(int, text.split())
    near: list[list[int]] = [[] for _ in range(n + 1)]
    for a, b in zip(numbers[::2], numbers[1::2], strict=True):
        near[a].append(b)
        near[b].append(a)
    entered = [0] * (n + 1)
    clock = needed = 0

    def explore(island: int, origin: int) -> int:
        nonlocal clock, needed
        clock += 1
        entered[island] = lowest = clock
        for other in near[island]:
            if other == origin:
                continue
            if entered[other]:
                lowest = min(lowest, entered[other])
            else:
                reach = explore(other, island)
                lowest = min(lowest, reach)
                needed += reach > entered[island]
        return lowest

    explore(1, 0)
    return str(needed)


def _sea(draw: Draw, size: int) -> str:
    return "\n".join([str(size), *(draw.text(size, "#..") for _ in range(size))])


@problem(
    "graphs",
    "easy",
    """
The first line holds n (1 <= n <= 60). Each of the next n lines holds n signs, `#` for land and `.` for water. Pieces of land that touch along an edge belong to the same
island. Print the number of squares of the largest island, 0 if there is no land.
""",
    example="4\n#..#\n##.#\n....\n.###",
    inputs=_sea,
    sizes=(1, 2, 3, 4, 5, 8, 20, 60),
)
def largest_island(text: str) -> str:
    _, *rows = text.split()
    land = {(y, x) for y, row in enumerate(rows) for x, sign in enumerate(row) if sign == "#"}
    best = 0
    while land:
        ahead = [land.pop()]
        size = 0
        while ahead:
            y, x = ahead.pop()
            size += 1
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if near in land:
                    land.remove(near)
                    ahead.append(near)
        best = max(best, size)
    return str(best)


def _orchard(draw: Draw, size: int) -> str:
    rows = [draw.text(size, "ooooo.") for _ in range(size)]
    rows[draw(0, size - 1)] = "x" + draw.text(size - 1, "oo.")
    return "\n".join([str(size), *rows])


@problem(
    "graphs",
    "medium",
    """
The first line holds n (1 <= n <= 60). Each of the next n lines holds n signs: `x` for a tree that burns, `o` for a tree, `.` for an empty place. In every minute the fire spreads
from each burning tree to the trees beside it along a row or a column. Print after how many minutes all trees burn, or -1 if some never do.
""",
    example="3\nxoo\n.oo\noo.",
    inputs=_orchard,
    sizes=(1, 2, 3, 3, 4, 5, 8, 20, 60),
)
def forest_fire(text: str) -> str:
    _, *rows = text.split()
    trees = {(y, x): sign for y, row in enumerate(rows) for x, sign in enumerate(row) if sign != "."}
    burning = {place for place, sign in trees.items() if sign == "x"}
    front, minutes = set(burning), 0
    while len(burning) < len(trees):
        front = {(y + dy, x + dx) for y, x in front for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0))}
        front = (front & trees.keys()) - burning
        if not front:
            return "-1"
        burning |= front
        minutes += 1
    return str(minutes)


def _arrows(draw: Draw, size: int) -> str:
    return f"{size}\n{' '.join(str(draw(1, size)) for _ in range(size))}"


@problem(
    "graphs",
    "easy",
    """
Each of n rooms, numbered from 1 to n, has one door that leads to some room, perhaps itself. The first line holds n (1 <= n <= 3000), the second line the rooms that the doors of
the rooms 1, 2, ..., n lead to. You start in room 1 and always take the door. Sooner or later you walk round in a circle; print how many rooms are part of it.
""",
    example="5\n3 1 4 5 3",
    inputs=_arrows,
)
def circle_of_rooms(text: str) -> str:
    n, *doors = map(int, text.split())
    room = 1
    for _ in range(n):
        room = doors[room - 1]
    start, length = room, 0
    while length == 0 or room != start:
        room, length = doors[room - 1], length + 1
    return str(length)
