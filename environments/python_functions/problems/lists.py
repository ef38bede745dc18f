"""Problems about lists."""

# mypy: disable-error-code="type-arg"
# (questions show these signatures; `list` reads better there than `list[Any]`)

from ..problem import problem


@problem(
    "lists",
    "easy",
    [([1, 2, 3, 4, 5], 2), ([1, 2, 3], 0), ([1, 2, 3], 3), ([1, 2, 3], 7), ([1, 2, 3, 4], -1), ([], 4), (["a"], 5)],
)
def rotate(items: list, places: int) -> list:
    """Move all items `places` to the right; what falls off at the end comes in again at the front. Negative: to the left.

    >>> rotate([1, 2, 3, 4], 1)
    [4, 1, 2, 3]
    """
    if not items:
        return []
    cut = -places % len(items)
    return items[cut:] + items[:cut]


@problem(
    "lists",
    "medium",
    [([1, [2, [3, [4]]]],), ([],), ([[], [[]]],), ([[1, 2], [3], 4],), ([[[["deep"]]]],), ([0, [False, [None]]],)],
)
def flatten(items: list) -> list:
    """Replace every list inside a list, at any depth, by its items.

    >>> flatten([1, [2, 3], [[4], []]])
    [1, 2, 3, 4]
    """
    flat = []
    for item in items:
        if isinstance(item, list):
            flat.extend(flatten(item))
        else:
            flat.append(item)
    return flat


@problem(
    "lists",
    "easy",
    [([1, 2, 3, 4, 5], 2), ([1, 2, 3, 4], 2), ([], 3), ([1], 5), ([1, 2, 3, 4, 5, 6, 7], 3), (["a", "b"], 1)],
)
def in_chunks(items: list, size: int) -> list[list]:
    """Cut a list into consecutive lists of `size` items; the last one may be shorter.

    >>> in_chunks([1, 2, 3, 4, 5, 6, 7, 8], 3)
    [[1, 2, 3], [4, 5, 6], [7, 8]]
    """
    return [items[start : start + size] for start in range(0, len(items), size)]


@problem("lists", "easy", [([3, 1, 2],), ([5, 5, 4],), ([7],), ([],), ([2, 2, 2],), ([-1, -5, -3],), ([10, 9, 10, 8],)])
def second_largest(numbers: list[int]) -> int | None:
    """The second largest of the different values in a list, or None if there are fewer than two.

    >>> second_largest([4, 9, 9, 6])
    6
    >>> second_largest([4, 4]) is None
    True
    """
    values = sorted(set(numbers))
    return values[-2] if len(values) > 1 else None


@problem(
    "lists",
    "medium",
    [
        ([-2, 1, -3, 4, -1, 2, 1, -5, 4],),
        ([1],),
        ([-3, -1, -2],),
        ([5, 4, -1, 7, 8],),
        ([2, -1, 2, -1, 2],),
        ([-1, 0, -2],),
        ([1, -9, 10],),
    ],
)
def best_run(numbers: list[int]) -> int:
    """The largest sum that some consecutive numbers of a non-empty list have; at least one number has to be taken.

    >>> best_run([3, -4, 5, -1, 2, -6])
    6
    """
    best = current = numbers[0]
    for number in numbers[1:]:
        current = max(number, current + number)
        best = max(best, current)
    return best


@problem(
    "lists",
    "hard",
    [
        ([10, 9, 2, 5, 3, 7, 101, 18],),
        ([0, 1, 0, 3, 2, 3],),
        ([7, 7, 7],),
        ([],),
        ([5, 4, 3],),
        ([1, 2, 3, 4],),
        ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5],),
    ],
)
def longest_rise(numbers: list[int]) -> int:
    """The length of the longest strictly rising row of numbers that is left when any numbers of the list are crossed out.

    >>> longest_rise([4, 1, 6, 2, 8, 3, 9])
    4
    """
    lengths: list[int] = []
    for place, number in enumerate(numbers):
        lengths.append(1 + max((lengths[earlier] for earlier in range(place) if numbers[earlier] < number), default=0))
    return max(lengths, default=0)


@problem(
    "lists",
    "medium",
    [
        ([2, 7, 11, 15], 9),
        ([3, 2, 4], 6),
        ([3, 3], 6),
        ([1, 2, 3], 7),
        ([], 0),
        ([0, 4, 3, 0], 0),
        ([-1, -2, -3, -4, -5], -8),
        ([5, 1, 4, 2], 6),
    ],
)
def pair_with_sum(numbers: list[int], total: int) -> list[int] | None:
    """Two places i < j whose numbers add up to `total`, or None. If there are several pairs: the one with the smallest j, and of those
    the one with the smallest i.

    >>> pair_with_sum([1, 5, 3, 7], 8)
    [1, 2]
    """
    for j in range(len(numbers)):
        for i in range(j):
            if numbers[i] + numbers[j] == total:
                return [i, j]
    return None


@problem(
    "lists",
    "easy",
    [([1, 2, 3, 4, 5], 3), ([1, 2], 3), ([4, 4, 4], 1), ([10, -10, 10, -10], 2), ([], 1), ([1, 2, 3], 3)],
)
def moving_sums(numbers: list[int], window: int) -> list[int]:
    """The sums of every `window` consecutive numbers, in order; empty if there are too few numbers.

    >>> moving_sums([5, 1, 2, 8], 2)
    [6, 3, 10]
    """
    return [sum(numbers[start : start + window]) for start in range(len(numbers) - window + 1)]


@problem("lists", "easy", [([3, 1, 3, 2, 1],), ([],), (["b", "a", "b"],), ([1, 1, 1],), ([1, 2, 3],), (["A", "a"],)])
def without_repeats(items: list) -> list:
    """Keep the first of several equal items and drop the others; the order stays.

    >>> without_repeats([4, 2, 4, 4, 7, 2])
    [4, 2, 7]
    """
    return list(dict.fromkeys(items))


@problem(
    "lists",
    "hard",
    [
        ([2, 4, 1, 3, 5],),
        ([1, 2, 3],),
        ([3, 2, 1],),
        ([],),
        ([1, 1, 1],),
        ([5, 1, 4, 2, 3],),
        (list(range(60, 0, -1)),),
    ],
)
def inversions(numbers: list[int]) -> int:
    """How many pairs of numbers stand in the wrong order, the larger one before the smaller one. Equal numbers are never wrong.

    >>> inversions([3, 1, 2])
    2
    """
    return sum(numbers[i] > numbers[j] for j in range(len(numbers)) for i in range(j))


@problem("lists", "medium", [([1, 2, 3, 7, 9, 10],), ([],), ([5],), ([1, 3, 5],), ([-2, -1, 0, 4],), ([8, 9, 10, 11],)])
def as_ranges(numbers: list[int]) -> str:
    """Write a rising list of different whole numbers with commas between them, and three or more consecutive ones as `first..last`.

    >>> as_ranges([1, 2, 4, 5, 6, 9])
    '1,2,4..6,9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}..{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


@problem(
    "lists",
    "medium",
    [([[1, 4, 9], [2, 3], [5]],), ([],), ([[], []],), ([[1, 1], [1]],), ([[3, 8], [0, 10], [8]],), ([[-5], [-7, -6]],)],
)
def merge_sorted(lists: list[list[int]]) -> list[int]:
    """Merge any number of rising lists into one rising list.

    >>> merge_sorted([[1, 5], [2, 2, 7], []])
    [1, 2, 2, 5, 7]
    """
    return sorted(number for numbers in lists for number in numbers)
