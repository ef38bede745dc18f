"""Problems about combinations, graphs and best choices."""

from ..problem import problem


@problem("choices", "medium", [([1, 2, 3],), ([],), ([5],), ([3, 1],), ([1, 2, 3, 4],)])
def subsets(numbers: list[int]) -> list[list[int]]:
    """All subsets of a list of different numbers. Each is sorted; shorter ones come first, and equally long ones in the order of their
    numbers.

    >>> subsets([2, 1])
    [[], [1], [2], [1, 2]]
    """
    found: list[list[int]] = [[]]
    for number in sorted(numbers):
        found += [[*subset, number] for subset in found]
    return sorted(found, key=lambda subset: (len(subset), subset))


@problem(
    "choices",
    "hard",
    [([1, 2, 5], 11), ([2], 3), ([1], 0), ([1, 3, 4], 6), ([5, 10], 30), ([7, 3], 5), ([2, 5, 10, 1], 27), ([4, 6], 9)],
)
def fewest_coins(coins: list[int], amount: int) -> int | None:
    """The smallest number of coins that make up an amount, with any number of coins of each value; None if it cannot be made up.

    >>> fewest_coins([1, 5, 8], 15)
    3
    """
    best: list[int | None] = [0]
    for total in range(1, amount + 1):
        options = [count for coin in coins if coin <= total and (count := best[total - coin]) is not None]
        best.append(min(options) + 1 if options else None)
    return best[amount]


@problem(
    "choices", "hard", [([1, 2, 5], 5), ([2], 3), ([3, 5], 0), ([1, 2], 10), ([10, 20, 50], 100), ([1, 5, 10, 25], 50)]
)
def ways_to_pay(coins: list[int], amount: int) -> int:
    """In how many ways an amount can be made up of coins of the given values; the order of the coins does not matter.

    >>> ways_to_pay([1, 2, 3], 4)
    4
    """
    ways = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return ways[amount]


@problem(
    "choices",
    "hard",
    [
        ([[60, 10], [100, 20], [120, 30]], 50),
        ([], 10),
        ([[5, 11]], 10),
        ([[5, 10]], 10),
        ([[1, 1], [6, 2], [10, 3], [16, 5]], 7),
        ([[3, 2], [4, 3], [5, 4], [6, 5]], 5),
    ],
)
def best_load(items: list[list[int]], capacity: int) -> int:
    """The largest total value of items [value, weight], each taken at most once, whose total weight is not above the capacity.

    >>> best_load([[10, 4], [7, 3], [6, 3]], 6)
    13
    """
    best = [0] * (capacity + 1)
    for value, weight in items:
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


@problem(
    "choices",
    "medium",
    [
        (5, [[0, 1], [1, 2], [3, 4]]),
        (3, []),
        (1, []),
        (4, [[0, 1], [2, 3], [1, 2]]),
        (6, [[0, 5], [5, 0], [1, 1]]),
        (0, []),
    ],
)
def groups(people: int, friendships: list[list[int]]) -> int:
    """Into how many groups people fall who are numbered from 0, if friends, and friends of friends and so on, are in the same group.

    >>> groups(4, [[0, 2], [2, 3]])
    2
    """
    group = list(range(people))
    for a, b in friendships:
        old, new = group[a], group[b]
        group = [new if one == old else one for one in group]
    return len(set(group))


@problem(
    "choices",
    "hard",
    [
        ({"A": {"B": 1, "C": 4}, "B": {"C": 2, "D": 6}, "C": {"D": 3}, "D": {}}, "A"),
        ({"x": {}}, "x"),
        ({"a": {"b": 7}, "b": {"a": 7}, "c": {}}, "b"),
        ({"s": {"t": 10, "u": 3}, "u": {"t": 4, "v": 8}, "t": {"v": 2}, "v": {}}, "s"),
    ],
)
def distances(roads: dict[str, dict[str, int]], start: str) -> dict[str, int]:
    """The length of the shortest way from `start` to every place that can be reached, itself included. `roads[a][b]` is the positive length of
    the one-way road from a to b.

    >>> distances({"p": {"q": 5, "r": 1}, "r": {"q": 2}, "q": {}}, "p")
    {'p': 0, 'r': 1, 'q': 3}
    """
    found: dict[str, int] = {}
    ahead = {start: 0}
    while ahead:
        place = min(ahead, key=lambda name: ahead[name])
        found[place] = ahead.pop(place)
        for other, length in roads[place].items():
            if other not in found:
                ahead[other] = min(ahead.get(other, found[place] + length), found[place] + length)
    return found


@problem("choices", "hard", [(1,), (2,), (3,), (4,), (5,), (6,), (8,)])
def queens(size: int) -> int:
    """In how many ways `size` queens can stand on a board of `size` times `size` squares so that no two of them are in the same row, column
    or diagonal.

    >>> queens(7)
    40
    """

    def place(row: int, taken: list[int]) -> int:
        if row == size:
            return 1
        free = [
            column
            for column in range(size)
            if all(column != other and abs(column - other) != row - above for above, other in enumerate(taken))
        ]
        return sum(place(row + 1, [*taken, column]) for column in free)

    return place(0, [])


@problem("choices", "medium", [(1,), (3,), (4,), (5,), (0,)])
def gray_code(bits: int) -> list[str]:
    """All rows of `bits` binary digits, beginning with zeros alone, so that each differs from the one before in one digit: take the list for one
    digit less with a 0 in front of each row, then the same list backwards with a 1 in front. For 0 digits the list is [""].

    >>> gray_code(2)
    ['00', '01', '11', '10']
    """
    rows = [""]
    for _ in range(bits):
        rows = ["0" + row for row in rows] + ["1" + row for row in reversed(rows)]
    return rows


@problem("choices", "medium", [(1,), (3,), (0,), (4,), (5,)])
def hanoi(discs: int) -> list[list[str]]:
    """The shortest way to move a tower of discs from peg A to peg C over peg B: a list of moves [from, to]. Only the top disc of a peg moves, and
    never onto a smaller one.

    >>> hanoi(2)
    [['A', 'B'], ['A', 'C'], ['B', 'C']]
    """

    def moves(count: int, source: str, over: str, target: str) -> list[list[str]]:
        if count == 0:
            return []
        return [*moves(count - 1, source, target, over), [source, target], *moves(count - 1, over, source, target)]

    return moves(discs, "A", "B", "C")
