"""Problems about networks and grids."""

from ..problem import Draw, problem


def _knight(draw: Draw, size: int) -> str:
    n = max(3, size)
    return f"{n}\n{draw(1, n)} {draw(1, n)}\n{draw(1, n)} {draw(1, n)}"


@problem(
    "graphs",
    "medium",
    """
A knight stands on a chessboard of n times n squares (3 <= n <= 200). A move goes two squares along a row or a column and one square to the
side. The first line holds n, the next two lines row and column of the knight and of its goal, each from 1 to n. Print the smallest number of
moves to the goal, or -1 if it cannot be reached.
""",
    example="8\n1 1\n8 8",
    inputs=_knight,
    sizes=(3, 3, 3, 4, 5, 8, 20, 200),
)
def knight_moves(text: str) -> str:
    n, *rest = map(int, text.split())
    start, goal = (rest[0], rest[1]), (rest[2], rest[3])
    jumps = [(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)]
    front, reached, moves = [start], {start}, 0
    while front:
        if goal in front:
            return str(moves)
        following = []
        for row, column in front:
            for down, right in jumps:
                square = (row + down, column + right)
                if 1 <= square[0] <= n and 1 <= square[1] <= n and square not in reached:
                    reached.add(square)
                    following.append(square)
        front, moves = following, moves + 1
    return "-1"


def _cables(draw: Draw, size: int) -> str:
    rows = [f"{size} {size}"]
    rows += [f"{draw.pick('+?')} {draw(1, size)} {draw(1, size)}" for _ in range(size)]
    return "\n".join(rows)


@problem(
    "graphs",
    "medium",
    """
n computers are numbered from 1 to n, and at first none are connected. The first line holds n and q (1 <= n, q <= 3000). Each of the next q
lines is `+ a b`, which lays a cable between a and b, or `? a b`, which asks whether a and b are connected by cables, directly or over others.
For each question print `yes` or `no`, one per line; if there is no question, print `none`.
""",
    example="4 5\n? 1 2\n+ 1 2\n+ 2 3\n? 1 3\n? 4 1",
    inputs=_cables,
)
def cables(text: str) -> str:
    lines = text.splitlines()
    n = int(lines[0].split()[0])
    leader = list(range(n + 1))

    def find(one: int) -> int:
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        return one

    answers = []
    for line in lines[1:]:
        sign, a, b = line.split()
        first, second = find(int(a)), find(int(b))
        if sign == "+":
            leader[first] = second
        else:
            answers.append("yes" if first == second else "no")
    return "\n".join(answers) or "none"


def _roads(draw: Draw, size: int) -> str:
    rows = [f"{size} {2 * size}"]
    rows += [f"{draw(1, size)} {draw(1, size)} {draw(1, 1000)}" for _ in range(2 * size)]
    return "\n".join(rows)


@problem(
    "graphs",
    "hard",
    """
The first line holds n and m (1 <= n <= 3000, 1 <= m <= 6000): there are towns from 1 to n and m one-way roads. Each of the next m lines holds
a, b and c: a road from a to b of length c (1 to 1000). Print for each town the length of the shortest way to it from town 1, or -1 if there is
none, on one line.
""",
    example="4 4\n1 2 5\n1 3 2\n3 2 1\n2 1 7",
    inputs=_roads,
)
def shortest_ways(text: str) -> str:
    import heapq

    n, _, *numbers = map(int, text.split())
    roads: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    for a, b, length in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        roads[a].append((b, length))
    distance: dict[int, int] = {}
    heap = [(0, 1)]
    while heap:
        way, town = heapq.heappop(heap)
        if town not in distance:
            distance[town] = way
            for other, length in roads[town]:
                heapq.heappush(heap, (way + length, other))
    return " ".join(str(distance.get(town, -1)) for town in range(1, n + 1))


def _pipes(draw: Draw, size: int) -> str:
    edges = [(number, draw(1, number - 1), draw(1, 1000)) for number in range(2, size + 1)]
    edges += [(draw(1, size), draw(1, size), draw(1, 1000)) for _ in range(size)]
    return "\n".join([f"{size} {len(edges)}", *(f"{a} {b} {c}" for a, b, c in edges)])


@problem(
    "graphs",
    "hard",
    """
The first line holds n and m (1 <= n <= 3000, 1 <= m <= 6000): n houses and m possible water pipes. Each of the next m lines holds a, b and c: a
pipe between the houses a and b costs c (1 to 1000). It is possible to connect all houses. Print the lowest total cost of pipes that connect all
of them.
""",
    example="4 5\n1 2 3\n2 3 1\n3 4 4\n4 1 2\n1 3 9",
    inputs=_pipes,
)
def water_pipes(text: str) -> str:
    n, _, *numbers = map(int, text.split())
    leader = list(range(n + 1))

    def find(one: int) -> int:
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        return one

    total = 0
    for cost, a, b in sorted(zip(numbers[2::3], numbers[::3], numbers[1::3], strict=True)):
        first, second = find(a), find(b)
        if first != second:
            leader[first] = second
            total += cost
    return str(total)


def _steps(draw: Draw, size: int) -> str:
    rows = [f"{size} {size}", " ".join(map(str, draw.list(size, 1, 100)))]
    for _ in range(size):
        first, second = draw(1, size), draw(1, size)
        if first == second:
            first, second = 1, size
        rows.append(f"{min(first, second)} {max(first, second)}")
    return "\n".join(rows)


@problem(
    "graphs",
    "hard",
    """
Building a house takes n steps, numbered from 1 to n. The first line holds n and m (2 <= n <= 3000, 1 <= m <= 3000), the second line the days that
each step takes (1 to 100). Each of the next m lines holds a and b (a < b): step b can begin only after step a has ended. Steps that do not wait
for each other can go on at the same time. Print after how many days the house can be ready.
""",
    example="4 3\n3 2 5 1\n1 2\n1 3\n2 4",
    inputs=_steps,
    sizes=(2, 2, 3, 5, 8, 12, 40, 300, 3000),
)
def building_steps(text: str) -> str:
    n, _, *numbers = map(int, text.split())
    days = numbers[:n]
    waits: list[list[int]] = [[] for _ in range(n + 1)]
    for a, b in zip(numbers[n::2], numbers[n + 1 :: 2], strict=True):
        waits[b].append(a)
    ready = [0] * (n + 1)
    for step in range(1, n + 1):
        ready[step] = days[step - 1] + max((ready[earlier] for earlier in waits[step]), default=0)
    return str(max(ready))


def _map(draw: Draw, size: int) -> str:
    rows = [draw.text(size, "#.#") for _ in range(size)]
    return "\n".join([str(size), *rows])


@problem(
    "graphs",
    "medium",
    """
The first line holds n (1 <= n <= 60). Each of the next n lines holds n signs, `#` for land and `.` for water. Print the side length of the largest
square of the map that is all land, 0 if there is no land.
""",
    example="4\n##.#\n###.\n###.\n.###",
    inputs=_map,
    sizes=(1, 1, 2, 3, 5, 8, 20, 60),
)
def largest_square(text: str) -> str:
    _, *rows = text.split()
    best, above = 0, [0] * (len(rows) + 1)
    for row in rows:
        current = [0]
        for place, sign in enumerate(row, start=1):
            current.append(1 + min(above[place - 1], above[place], current[place - 1]) if sign == "#" else 0)
        best, above = max(best, *current), current
    return str(best)
