"""Problems about rows of numbers."""

from ..problem import Draw, problem


def line(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def _pairs(draw: Draw, size: int) -> str:
    span = max(3, size // 4)
    return f"{size} {draw(0, 2 * span)}\n{line(draw.list(size, 0, span))}"


@problem(
    "arrays",
    "easy",
    """
The first line holds n and k (1 <= n <= 3000, 0 <= k <= 10^6), the second line n whole numbers from 0 to 10^6.
Print how many pairs of places i < j have numbers whose sum is k.
""",
    example="5 6\n1 5 3 3 3",
    inputs=_pairs,
)
def pairs_with_sum(text: str) -> str:
    _, k, *numbers = map(int, text.split())
    seen: dict[int, int] = {}
    pairs = 0
    for number in numbers:
        pairs += seen.get(k - number, 0)
        seen[number] = seen.get(number, 0) + 1
    return str(pairs)


def _ranges(draw: Draw, size: int) -> str:
    rows = [f"{size} {size}", line(draw.list(size, -(10**6), 10**6))]
    for _ in range(size):
        first, second = draw(1, size), draw(1, size)
        rows.append(f"{min(first, second)} {max(first, second)}")
    return "\n".join(rows)


@problem(
    "arrays",
    "easy",
    """
The first line holds n and q (1 <= n, q <= 3000), the second line n whole numbers, each between -10^6 and 10^6. Each of the next q lines
holds two places a and b (1 <= a <= b <= n). For each of them print the sum of the numbers from place a to place b, one per line.
""",
    example="4 3\n5 -2 7 1\n1 4\n2 2\n2 3",
    inputs=_ranges,
)
def range_sums(text: str) -> str:
    n, _, *rest = map(int, text.split())
    sums = [0]
    for number in rest[:n]:
        sums.append(sums[-1] + number)
    queries = zip(rest[n::2], rest[n + 1 :: 2], strict=True)
    return "\n".join(str(sums[b] - sums[a - 1]) for a, b in queries)


def _prices(draw: Draw, size: int) -> str:
    return f"{size}\n{line(draw.list(size, 1, 10**6))}"


@problem(
    "arrays",
    "easy",
    """
The first line holds n (1 <= n <= 3000), the second line the price of a share on n days, whole numbers from 1 to 10^6. You may buy one share
on some day and sell it on a later one. Print the largest possible gain, or 0 if there is none.
""",
    example="6\n7 1 5 3 6 4",
    inputs=_prices,
)
def buy_and_sell(text: str) -> str:
    _, *prices = map(int, text.split())
    lowest, gain = prices[0], 0
    for price in prices:
        lowest = min(lowest, price)
        gain = max(gain, price - lowest)
    return str(gain)


def _lamps(draw: Draw, size: int) -> str:
    length = draw(size, 10**9)
    return f"{size} {length}\n{line(draw.list(size, 0, length))}"


@problem(
    "arrays",
    "medium",
    """
The first line holds n and l (1 <= n <= 3000, 1 <= l <= 10^9), the second line the places of n lamps along a street that reaches from 0 to l.
Every lamp lights the street up to a distance r on both sides. Print the smallest r that lights the whole street, times two (so that it is a
whole number).
""",
    example="3 15\n5 0 11",
    inputs=_lamps,
)
def street_lamps(text: str) -> str:
    import itertools

    _, length, *lamps = map(int, text.split())
    gaps = [right - left for left, right in itertools.pairwise(sorted(lamps))]
    return str(max([2 * min(lamps), 2 * (length - max(lamps)), *gaps]))


def _crates(draw: Draw, size: int) -> str:
    return f"{size} {draw(1, size)}\n{line(draw.list(size, 1, 1000))}"


@problem(
    "arrays",
    "medium",
    """
The first line holds n and d (1 <= d <= n <= 3000), the second line the weights of n crates (whole numbers from 1 to 1000) in the order in
which they have to be shipped. A ship sails once a day for d days and each day takes the next crates in the row. Print the smallest load
capacity with which everything is shipped in time.
""",
    example="6 3\n3 2 2 4 1 4",
    inputs=_crates,
)
def shipping(text: str) -> str:
    _, days, *weights = map(int, text.split())
    low, high = max(weights), sum(weights)
    while low < high:
        capacity = (low + high) // 2
        used, load = 1, 0
        for weight in weights:
            if load + weight > capacity:
                used, load = used + 1, 0
            load += weight
        if used <= days:
            high = capacity
        else:
            low = capacity + 1
    return str(low)


def _window(draw: Draw, size: int) -> str:
    return f"{size} {draw(1, size)}\n{line(draw.list(size, -1000, 1000))}"


@problem(
    "arrays",
    "hard",
    """
The first line holds n and k (1 <= k <= n <= 3000), the second line n whole numbers between -1000 and 1000. Print the largest number of each
row of k consecutive numbers, from left to right, on one line.
""",
    example="8 3\n1 3 -1 -3 5 3 6 7",
    inputs=_window,
)
def window_maximum(text: str) -> str:
    from collections import deque

    _, k, *numbers = map(int, text.split())
    places: deque[int] = deque()
    found = []
    for place, number in enumerate(numbers):
        while places and numbers[places[-1]] <= number:
            places.pop()
        places.append(place)
        if places[0] <= place - k:
            places.popleft()
        if place >= k - 1:
            found.append(numbers[places[0]])
    return " ".join(map(str, found))


def _next(draw: Draw, size: int) -> str:
    return f"{size}\n{line(draw.list(size, 1, 10**9))}"


@problem(
    "arrays",
    "medium",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers from 1 to 10^9. For each of them print the first larger number to
its right, or -1 if there is none, on one line.
""",
    example="5\n2 7 3 5 4",
    inputs=_next,
)
def next_larger(text: str) -> str:
    _, *numbers = map(int, text.split())
    answers = [-1] * len(numbers)
    waiting: list[int] = []
    for place, number in enumerate(numbers):
        while waiting and numbers[waiting[-1]] < number:
            answers[waiting.pop()] = number
        waiting.append(place)
    return " ".join(map(str, answers))


def _shuffled(draw: Draw, size: int) -> str:
    return f"{size}\n{line(draw.list(size, 1, 10**6))}"


@problem(
    "arrays",
    "hard",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers from 1 to 10^6. A move swaps two neighbours. Print the smallest
number of moves that sorts the row in rising order.
""",
    example="5\n2 4 1 3 5",
    inputs=_shuffled,
)
def neighbour_swaps(text: str) -> str:
    import bisect

    _, *numbers = map(int, text.split())
    seen: list[int] = []
    swaps = 0
    for number in numbers:
        place = bisect.bisect_right(seen, number)
        swaps += len(seen) - place
        seen.insert(place, number)
    return str(swaps)
