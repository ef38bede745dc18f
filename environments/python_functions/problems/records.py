"""Problems about dictionaries, records and intervals."""

# mypy: disable-error-code="type-arg"
# (questions show these signatures; `list` reads better there than `list[Any]`)

from ..problem import problem


@problem(
    "records",
    "medium",
    [(["a cat", "the dog and a cat", "dog"],), ([],), (["x x x"],), (["One one", "ONE two"],), (["", "end"],)],
)
def word_index(lines: list[str]) -> dict[str, list[int]]:
    """For each word in small letters, the numbers of the lines that contain it, rising, each once; the first line has the number 1.
    Words are separated by spaces.

    >>> word_index(["to be", "Not to be be"])
    {'to': [1, 2], 'be': [1, 2], 'not': [2]}
    """
    index: dict[str, list[int]] = {}
    for number, line in enumerate(lines, start=1):
        for word in dict.fromkeys(line.lower().split()):
            index.setdefault(word, []).append(number)
    return index


@problem(
    "records",
    "easy",
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}),
        ({}, {}),
        ({"x": 5}, {}),
        ({"x": 1}, {"x": -1}),
        ({"p": 2, "q": 2}, {"q": 1}),
    ],
)
def add_counts(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    """Add two tallies. A name whose total is 0 is left out.

    >>> add_counts({"egg": 2, "nut": 1}, {"egg": 3, "nut": -1})
    {'egg': 5}
    """
    totals = {name: first.get(name, 0) + second.get(name, 0) for name in [*first, *second]}
    return {name: total for name, total in totals.items() if total}


@problem(
    "records",
    "medium",
    [
        ({"Ann": 30, "Bob": 25, "Cyd": 30, "Dan": 10},),
        ({},),
        ({"A": 1},),
        ({"z": 5, "y": 5, "x": 5},),
        ({"p": 3, "q": 9, "r": 3, "s": 1},),
    ],
)
def leaderboard(points: dict[str, int]) -> list[list]:
    """Rows of [rank, name, points], most points first and equal points by name. Equal points share a rank, and the next rank counts how
    many are ahead: 1, 1, 3.

    >>> leaderboard({"Mia": 7, "Leo": 9, "Eva": 7, "Tim": 2})
    [[1, 'Leo', 9], [2, 'Eva', 7], [2, 'Mia', 7], [4, 'Tim', 2]]
    """
    rows = sorted(points.items(), key=lambda row: (-row[1], row[0]))
    return [[1 + sum(other > own for other in points.values()), name, own] for name, own in rows]


@problem(
    "records",
    "medium",
    [
        ({"a": {"b": 1}}, {"a": {"c": 2}}),
        ({"a": 1}, {"a": {"b": 2}}),
        ({"a": {"b": 2}}, {"a": 1}),
        ({}, {"x": {}}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 9}}}),
        ({"l": [1]}, {"l": [2]}),
    ],
)
def deep_merge(base: dict, changes: dict) -> dict:
    """A new dictionary with the entries of both. Where both have a key, the value of `changes` wins, unless both values are dictionaries:
    those are merged in the same way.

    >>> deep_merge({"size": {"x": 1, "y": 2}, "on": True}, {"size": {"y": 5}})
    {'size': {'x': 1, 'y': 5}, 'on': True}
    """
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = deep_merge(merged[key], value) if both else value
    return merged


@problem(
    "records",
    "medium",
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}),
        ({}, {}),
        ({"k": None}, {}),
        ({"x": 1}, {"x": 1}),
        ({"m": [1], "n": 0}, {"m": [1, 2], "n": 0}),
    ],
)
def changes(before: dict, after: dict) -> dict[str, list[str]]:
    """What differs between two dictionaries: the sorted keys that were `added`, `removed`, and `changed` in value.

    >>> changes({"a": 1, "b": 2}, {"a": 5, "c": 3})
    {'added': ['c'], 'removed': ['b'], 'changed': ['a']}
    """
    return {
        "added": sorted(set(after) - set(before)),
        "removed": sorted(set(before) - set(after)),
        "changed": sorted(key for key in set(before) & set(after) if before[key] != after[key]),
    }


@problem(
    "records",
    "hard",
    [
        ({"a": ["b"], "b": ["c"], "c": []},),
        ({},),
        ({"x": [], "w": [], "y": ["x", "w"]},),
        ({"a": ["b"], "b": ["a"]},),
        ({"a": ["a"]},),
        ({"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": []},),
    ],
)
def build_order(needs: dict[str, list[str]]) -> list[str] | None:
    """An order in which every name comes after all that it needs, or None where there is none. Of all names that could come next, always
    take the first in the alphabet. Every name that is needed is also a key.

    >>> build_order({"roof": ["wall"], "wall": ["base"], "base": [], "door": ["wall"]})
    ['base', 'wall', 'door', 'roof']
    """
    order: list[str] = []
    while len(order) < len(needs):
        ready = [name for name in needs if name not in order and all(other in order for other in needs[name])]
        if not ready:
            return None
        order.append(min(ready))
    return order


@problem(
    "records",
    "medium",
    [
        ([[1, 3], [2, 6], [8, 10]],),
        ([[1, 4], [4, 5]],),
        ([],),
        ([[5, 6], [1, 2]],),
        ([[1, 10], [2, 3], [4, 12]],),
        ([[1, 2], [3, 4]],),
        ([[0, 0], [0, 1]],),
    ],
)
def merge_intervals(intervals: list[list[int]]) -> list[list[int]]:
    """Unite intervals [start, end] that overlap or touch in a point; the result is sorted by start.

    >>> merge_intervals([[6, 8], [1, 4], [3, 5]])
    [[1, 5], [6, 8]]
    """
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@problem(
    "records",
    "hard",
    [
        ([[0, 30], [5, 10], [15, 20]],),
        ([[7, 10], [2, 4]],),
        ([],),
        ([[1, 5], [5, 9]],),
        ([[1, 10], [2, 9], [3, 8], [8, 11]],),
        ([[4, 5], [4, 5], [4, 5]],),
    ],
)
def rooms_needed(meetings: list[list[int]]) -> int:
    """The smallest number of rooms in which all meetings [start, end] can take place. A room is free again at the end of a meeting.

    >>> rooms_needed([[9, 11], [10, 12], [11, 13]])
    2
    """
    return max((sum(start <= other < end for start, end in meetings) for other, _ in meetings), default=0)


@problem(
    "records",
    "medium",
    [
        ({"a": {"b": [10, 20]}}, "a.b.1"),
        ({"a": 1}, "a"),
        ({"a": 1}, "b"),
        ({"a": {"b": None}}, "a.b"),
        ({"a": [1]}, "a.5"),
        ({"x": {"0": "zero"}}, "x.0"),
        ({"a": 3}, "a.b"),
    ],
)
def look_up(data: dict, path: str) -> object:
    """Follow a path of keys separated by points through nested dictionaries and lists, where a number is a place in a list. None if the
    path leads nowhere.

    >>> look_up({"users": [{"name": "Ida"}]}, "users.0.name")
    'Ida'
    """
    value: object = data
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
