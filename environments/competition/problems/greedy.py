"""Problems about good choices and games."""

from ..problem import Draw, problem


def _ropes(draw: Draw, size: int) -> str:
    return f"{size}\n{' '.join(map(str, draw.list(size, 1, 10**6)))}"


@problem(
    "choices",
    "medium",
    """
The first line holds n (1 <= n <= 3000), the second line the lengths of n ropes (whole numbers from 1 to 10^6). Tying two ropes together costs
as much as they are long together. Print the lowest cost of making one rope out of all of them.
""",
    example="4\n4 3 2 6",
    inputs=_ropes,
)
def tying_ropes(text: str) -> str:
    import heapq

    _, *ropes = map(int, text.split())
    heapq.heapify(ropes)
    cost = 0
    while len(ropes) > 1:
        both = heapq.heappop(ropes) + heapq.heappop(ropes)
        cost += both
        heapq.heappush(ropes, both)
    return str(cost)


def _talks(draw: Draw, size: int) -> str:
    rows = [str(size)]
    for _ in range(size):
        start = draw(0, 10 * size)
        rows.append(f"{start} {start + draw(1, 20)}")
    return "\n".join(rows)


@problem(
    "choices",
    "medium",
    """
The first line holds n (1 <= n <= 3000), each of the next n lines the start and the end of a talk (whole numbers, start < end). Print the
largest number of talks that one visitor can hear completely. A talk may begin at the moment in which another one ends.
""",
    example="4\n1 4\n3 5\n4 6\n6 7",
    inputs=_talks,
)
def most_talks(text: str) -> str:
    _, *numbers = map(int, text.split())
    talks = sorted(zip(numbers[1::2], numbers[::2], strict=True))
    heard, free = 0, -1
    for end, start in talks:
        if start >= free:
            heard, free = heard + 1, end
    return str(heard)


def _heaps(draw: Draw, size: int) -> str:
    heaps = draw.list(size, 1, 10**9)
    if size > 1 and draw(0, 1):
        others = 0
        for heap in heaps[:-1]:
            others ^= heap
        heaps[-1] = others or heaps[-1]
    return f"{size}\n{' '.join(map(str, heaps))}"


@problem(
    "choices",
    "hard",
    """
Two players take turns at n heaps of stones: a turn takes any number of stones, at least one, from one heap. Who takes the last stone wins.
The first line holds n (1 <= n <= 3000), the second line the sizes of the heaps (1 to 10^9). Print `first` if the player who begins can
force a win, otherwise `second`.
""",
    example="3\n1 2 3",
    inputs=_heaps,
    sizes=(1, 2, 3, 3, 4, 4, 7, 40, 3000),
)
def heaps_of_stones(text: str) -> str:
    _, *heaps = map(int, text.split())
    rest = 0
    for heap in heaps:
        rest ^= heap
    return "first" if rest else "second"


def _piles(draw: Draw, size: int) -> str:
    return f"{size}\n{' '.join(map(str, draw.list(size, 1, 100)))}"


@problem(
    "choices",
    "hard",
    """
The first line holds n (1 <= n <= 100), the second line the weights of n stones (whole numbers from 1 to 100). Put the stones on two piles so
that their weights differ as little as possible, and print the difference.
""",
    example="5\n5 8 13 27 14",
    inputs=_piles,
    sizes=(1, 2, 3, 4, 5, 6, 9, 100),
)
def two_piles(text: str) -> str:
    _, *weights = map(int, text.split())
    reachable = 1
    for weight in weights:
        reachable |= reachable << weight
    total = sum(weights)
    return str(min(abs(total - 2 * part) for part in range(total + 1) if reachable >> part & 1))


def _circle(draw: Draw, size: int) -> str:
    return f"{size} {draw(1, 2 * size + 3)}"


@problem(
    "choices",
    "medium",
    """
n children stand in a circle, numbered from 1 to n. Starting to count at child 1, every k-th child leaves the circle, and counting goes on
with the next one, until one child is left. The only line holds n and k (1 <= n <= 3000, 1 <= k <= 10^4). Print the number of the last child.
""",
    example="7 3",
    inputs=_circle,
)
def last_child(text: str) -> str:
    n, k = map(int, text.split())
    place = 0
    for count in range(2, n + 1):
        place = (place + k) % count
    return str(place + 1)


def _jobs(draw: Draw, size: int) -> str:
    rows = [str(size)]
    rows += [f"{draw(1, max(2, size // 2))} {draw(1, 1000)}" for _ in range(size)]
    return "\n".join(rows)


@problem(
    "choices",
    "hard",
    """
Each of n jobs takes one day and brings its pay only if it is done by its deadline; on each day one job can be done. The first line holds n
(1 <= n <= 3000), each of the next n lines the deadline of a job (a day from 1 to n) and its pay (1 to 1000). Print the largest total pay.
""",
    example="4\n2 50\n1 40\n2 30\n1 20",
    inputs=_jobs,
    sizes=(2, 3, 4, 6, 7, 12, 40, 300, 3000),
)
def paid_jobs(text: str) -> str:
    import heapq

    _, *numbers = map(int, text.split())
    chosen: list[int] = []
    for deadline, pay in sorted(zip(numbers[::2], numbers[1::2], strict=True)):
        heapq.heappush(chosen, pay)
        if len(chosen) > deadline:
            heapq.heappop(chosen)
    return str(sum(chosen))
