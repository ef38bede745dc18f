"""More problems about rows of numbers."""

from ..problem import Draw, problem


def row(numbers: list[int]) -> str:
    """A row of numbers as its length and the numbers, on two lines."""
    return f"{len(numbers)}\n{' '.join(map(str, numbers))}"


def _few_values(draw: Draw, size: int) -> str:
    return row(draw.list(size, 1, 3))


@problem(
    "arrays",
    "easy",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers from 1 to 1000. Print the length of the longest consecutive part in
which all numbers are equal.
""",
    example="7\n4 4 2 2 2 4 4",
    inputs=_few_values,
)
def equal_run(text: str) -> str:
    _, *numbers = map(int, text.split())
    best = length = 0
    before = None
    for number in numbers:
        length = length + 1 if number == before else 1
        best, before = max(best, length), number
    return str(best)


def _votes(draw: Draw, size: int) -> str:
    favourite = draw(1, 5)
    return row([favourite if draw(0, 1) else draw(1, 5) for _ in range(size)])


@problem(
    "arrays",
    "easy",
    """
The first line holds n (1 <= n <= 3000), the second line n votes, each the number of a candidate from 1 to 1000. Print the candidate with more
than half of the votes, or -1 if there is none.
""",
    example="5\n2 7 2 2 1",
    inputs=_votes,
)
def majority(text: str) -> str:
    n, *votes = map(int, text.split())
    candidate, lead = 0, 0
    for vote in votes:
        if lead == 0:
            candidate = vote
        lead += 1 if vote == candidate else -1
    return str(candidate if 2 * votes.count(candidate) > n else -1)


def _almost_all(draw: Draw, size: int) -> str:
    gone = draw(1, size + 1)
    return row([number if number != gone else draw(-9, 0) for number in (draw(1, size + 1) for _ in range(size))])


@problem(
    "arrays",
    "easy",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers between -10^6 and 10^6. Print the smallest positive whole number that is
not among them.
""",
    example="6\n3 1 -4 2 6 1",
    inputs=_almost_all,
)
def smallest_missing(text: str) -> str:
    _, *numbers = map(int, text.split())
    there = set(numbers)
    number = 1
    while number in there:
        number += 1
    return str(number)


def _walls(draw: Draw, size: int) -> str:
    return row(draw.list(size, 0, 50))


@problem(
    "arrays",
    "medium",
    """
The first line holds n (1 <= n <= 3000), the second line the heights of n walls (0 to 10^6) that stand side by side, each one unit wide. It rains until
no more water stays between the walls. Print how many units of water stay there.
""",
    example="12\n0 1 0 2 1 0 1 3 2 1 2 1",
    inputs=_walls,
)
def trapped_rain(text: str) -> str:
    _, *walls = map(int, text.split())
    left, right = 0, len(walls) - 1
    level = water = 0
    while left <= right:
        if walls[left] <= walls[right]:
            level = max(level, walls[left])
            water += level - walls[left]
            left += 1
        else:
            level = max(level, walls[right])
            water += level - walls[right]
            right -= 1
    return str(water)


@problem(
    "arrays",
    "hard",
    """
The first line holds n (1 <= n <= 3000), the second line the heights of n houses (0 to 10^6) that stand side by side, each one unit wide. Print the
area of the largest rectangular poster that can be hung on the fronts of the houses without leaving them.
""",
    example="6\n2 1 5 6 2 3",
    inputs=_walls,
)
def largest_poster(text: str) -> str:
    _, *heights = map(int, text.split())
    best = 0
    rising: list[tuple[int, int]] = []
    for place, height in enumerate([*heights, 0]):
        start = place
        while rising and rising[-1][1] >= height:
            start, lower = rising.pop()
            best = max(best, lower * (place - start))
        rising.append((start, height))
    return str(best)


def _zeros(draw: Draw, size: int) -> str:
    lengths = (size // 3, (size + 1) // 3, (size + 2) // 3)
    target = draw(-1, 1)
    parts = [draw.list(length - 1, -1, 1) for length in lengths]
    numbers = [number for part in parts for number in (*part, target - sum(part))]
    numbers[-1] += draw.pick((0, 0, 3))
    return row(numbers)


@problem(
    "arrays",
    "medium",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers between -1000 and 1000. Print in how many ways the row can be cut into three
parts, none of them empty, that all have the same sum.
""",
    example="5\n1 2 3 0 3",
    inputs=_zeros,
    sizes=(3, 4, 5, 5, 6, 6, 7, 7, 9, 9, 12, 12, 40, 300, 3000),
)
def three_parts(text: str) -> str:
    _, *numbers = map(int, text.split())
    total = sum(numbers)
    if total % 3:
        return "0"
    third, running, first_cuts, ways = total // 3, 0, 0, 0
    for number in numbers[:-1]:
        running += number
        if running == 2 * third:
            ways += first_cuts
        if running == third:
            first_cuts += 1
    return str(ways)


def _measures(draw: Draw, size: int) -> str:
    return row(draw.list(size, 1, 10**6))


@problem(
    "arrays",
    "hard",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers from 1 to 10^6 as they are measured one after the other. After each of them print
the median of all numbers so far, on one line: the middle one in sorted order, of two middle ones the smaller.
""",
    example="5\n5 1 4 2 3",
    inputs=_measures,
)
def running_median(text: str) -> str:
    import bisect

    _, *numbers = map(int, text.split())
    seen: list[int] = []
    medians = []
    for number in numbers:
        bisect.insort(seen, number)
        medians.append(seen[(len(seen) - 1) // 2])
    return " ".join(map(str, medians))
