"""The references against their examples, and against second solutions where one is easy to have."""

import ast
import copy
import csv
import datetime
import doctest
import heapq
import itertools
import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from gymflow.environments.python_functions import problem
from gymflow.environments.python_functions.cheats import CHEATS, cheat
from gymflow.environments.python_functions.tasks import generate

PROBLEMS = dict(problem.ALL)
TESTS = list(generate("test"))
CONSTANTS = (None, 0, 1, -1, "", "0", True, False, [], {}, [0], [[]], ["00", "01", "11", "10"])


def points(intervals: list[list[int]]) -> list[list[int]]:
    """Intervals united on a grid of half units."""
    covered = {half for start, end in intervals for half in range(2 * start, 2 * end + 1)}
    starts = sorted(half for half in covered if half - 1 not in covered)
    ends = sorted(half for half in covered if half + 1 not in covered)
    return [[start // 2, end // 2] for start, end in zip(starts, ends, strict=True)]


def distance(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    change = distance(first[1:], second[1:]) + (first[0] != second[0])
    return (
        change
        if first[0] == second[0]
        else min(change, 1 + distance(first[1:], second), 1 + distance(first, second[1:]))
    )


def amounts(coins: list[int], amount: int) -> list[int]:
    """Sizes of all multisets of coins with that sum."""
    counts = [range(amount // coin + 1) for coin in coins]
    return [sum(n) for n in itertools.product(*counts) if sum(c * k for c, k in zip(coins, n, strict=True)) == amount]


def loads(items: list[list[int]], capacity: int) -> int:
    chosen = itertools.chain.from_iterable(itertools.combinations(items, n) for n in range(len(items) + 1))
    return max(sum(value for value, _ in some) for some in chosen if sum(weight for _, weight in some) <= capacity)


def rise(numbers: list[int]) -> int:
    some = itertools.chain.from_iterable(itertools.combinations(numbers, n) for n in range(len(numbers) + 1))
    return max(len(row) for row in some if all(a < b for a, b in itertools.pairwise(row)))


def board(size: int) -> int:
    return sum(
        len({row + column for row, column in enumerate(place)})
        == len({row - column for row, column in enumerate(place)})
        == size
        for place in itertools.permutations(range(size))
    )


def walk(maze: list[str]) -> int | None:
    """Dijkstra on coordinates packed into one number."""
    width = len(maze[0]) + 1
    cells = {y * width + x: cell for y, row in enumerate(maze) for x, cell in enumerate(row)}
    heap, seen = [(0, next(place for place, cell in cells.items() if cell == "S"))], set()
    while heap:
        steps, place = heapq.heappop(heap)
        if cells.get(place, "#") == "#" or place in seen:
            continue
        if cells[place] == "E":
            return steps
        seen.add(place)
        for near in (place + 1, place - 1, place + width, place - width):
            heapq.heappush(heap, (steps + 1, near))
    return None


def topological(needs: dict[str, list[str]]) -> list[str] | None:
    orders = (list(order) for order in itertools.permutations(sorted(needs)))
    return next(
        (o for o in orders if all(o.index(n) < o.index(name) for name, all_ in needs.items() for n in all_)), None
    )


def floyd(roads: dict[str, dict[str, int]], start: str) -> dict[str, int]:
    length = {(a, b): roads[a].get(b, math.inf) if a != b else 0 for a in roads for b in roads}
    for over, a, b in itertools.product(roads, repeat=3):
        length[a, b] = min(length[a, b], length[a, over] + length[over, b])
    return {b: length[start, b] for b in roads if length[start, b] < math.inf}


def arithmetic(text: str) -> int:
    return eval(compile(ast.parse(text.strip(), mode="eval"), "expression", "eval"), {"__builtins__": {}})


def glob(pattern: str, name: str) -> bool:
    parts = {"*": ".*", "?": "."}
    return bool(re.fullmatch("".join(parts.get(sign, re.escape(sign)) for sign in pattern), name, re.DOTALL))


def merged(base: Any, changes: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(changes, dict)):
        return changes
    both = {key: merged(base[key], changes[key]) for key in base.keys() & changes.keys()}
    return {**base, **changes, **both}


def seconds(text: str) -> int:
    units = {"d": 24 * 60 * 60, "h": 60 * 60, "m": 60, "s": 1}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([dhms])", text))


def expansion(text: str) -> Fraction:
    whole, _, decimals = text.partition(".")
    fixed, _, cycle = decimals.rstrip(")").partition("(")
    value = int(whole) + Fraction(int(fixed or 0), 10 ** len(fixed))
    return value + (Fraction(int(cycle), 10 ** len(fixed) * (10 ** len(cycle) - 1)) if cycle else 0)


def minutes_free(busy: list[list[str]]) -> list[list[str]]:
    def minute(time: str) -> int:
        return int(time[:2]) * 60 + int(time[3:])

    def clock(minute: int) -> str:
        return f"{minute // 60:02d}:{minute % 60:02d}"

    free = [m for m in range(540, 1020) if not any(minute(a) <= m < minute(b) for a, b in busy)]
    starts = [m for m in free if m - 1 not in free]
    ends = [m + 1 for m in free if m + 1 not in free]
    return [[clock(a), clock(b)] for a, b in zip(starts, ends, strict=True)]


SECOND: dict[str, Callable[..., Any]] = {
    "count_vowels": lambda text: len(re.findall("[aeiou]", text, re.IGNORECASE)),
    "are_anagrams": lambda a, b: Counter(a.lower().replace(" ", "")) == Counter(b.lower().replace(" ", "")),
    "run_lengths": lambda text: [[key, len(list(run))] for key, run in itertools.groupby(text)],
    "common_prefix": lambda words: "".join(
        column[0] for column in itertools.takewhile(lambda c: len(set(c)) == 1, zip(*words, strict=False))
    ),
    "wrap_words": lambda text, width: textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False),
    "edit_distance": distance,
    "longest_palindrome": lambda text: max(
        (text[a:b] for a in range(len(text)) for b in range(a, len(text) + 1) if text[a:b] == text[a:b][::-1]),
        key=len,
        default="",
    ),
    "digital_root": lambda number: 1 + (number - 1) % 9 if number else 0,
    "primes_up_to": lambda limit: [n for n in range(2, limit + 1) if math.gcd(n, math.factorial(n - 1)) == 1],
    "fibonacci_modulo": lambda index, modulus: fibonacci(index) % modulus if index < 2000 else None,
    "luhn_valid": lambda digits: (
        sum(sum(divmod(int(d) * 2, 10)) if place % 2 else int(d) for place, d in enumerate(digits[::-1])) % 10 == 0
    ),
    "sum_of_multiples": lambda limit, factors: sum({m for f in factors for m in range(0, limit, f)}),
    "flatten": lambda items: _flat(items),
    "in_chunks": lambda items, size: [
        list(filter(lambda x: x is not _GAP, c)) for c in itertools.zip_longest(*[iter(items)] * size, fillvalue=_GAP)
    ],
    "second_largest": lambda numbers: heapq.nlargest(2, set(numbers))[1] if len(set(numbers)) > 1 else None,
    "best_run": lambda numbers: max(
        sum(numbers[a:b]) for a in range(len(numbers)) for b in range(a + 1, len(numbers) + 1)
    ),
    "longest_rise": rise,
    "moving_sums": lambda numbers, window: [
        sum(some) for some in zip(*(numbers[start:] for start in range(window)), strict=False)
    ],
    "inversions": lambda numbers: sum(a > b for a, b in itertools.combinations(numbers, 2)),
    "merge_sorted": lambda lists: list(heapq.merge(*lists)),
    "rotate": lambda items, places: [items[(i - places) % len(items)] for i in range(len(items))],
    "without_repeats": lambda items: [item for place, item in enumerate(items) if item not in items[:place]],
    "add_counts": lambda a, b: {k: n for k in a.keys() | b.keys() if (n := a.get(k, 0) + b.get(k, 0)) != 0},
    "deep_merge": merged,
    "build_order": topological,
    "merge_intervals": points,
    "rooms_needed": lambda meetings: max((sum(a <= t < b for a, b in meetings) for t in range(40)), default=0),
    "is_leap_year": lambda year: (datetime.date(year, 3, 1) - datetime.timedelta(days=1)).day == 29,
    "weekday": lambda date: datetime.date.fromisoformat(date).strftime("%A"),
    "parse_duration": seconds,
    "free_slots": minutes_free,
    "transpose": lambda rows: [[row[x] for row in rows] for x in range(len(rows[0]))],
    "shortest_way": walk,
    "pascal_row": lambda number: [math.comb(number, k) for k in range(number + 1)],
    "evaluate": arithmetic,
    "split_csv": lambda line: next(csv.reader([line] if "\n" not in line else line.splitlines(keepends=True))) or [""],
    "matches": glob,
    "subsets": lambda numbers: [
        list(some) for n in range(len(numbers) + 1) for some in itertools.combinations(sorted(numbers), n)
    ],
    "fewest_coins": lambda coins, amount: min(amounts(coins, amount), default=None),
    "ways_to_pay": lambda coins, amount: len(amounts(coins, amount)),
    "best_load": loads,
    "distances": floyd,
    "queens": board,
    "gray_code": lambda bits: [f"{n ^ n >> 1:0{bits}b}" if bits else "" for n in range(2**bits)],
}
_GAP = object()


def _flat(items: Any) -> list:
    return [leaf for item in items for leaf in _flat(item)] if isinstance(items, list) else [items]


def fibonacci(index: int) -> int:
    a, b = 0, 1
    for _ in range(index):
        a, b = b, a + b
    return a


INVERSES: dict[str, Callable[..., bool]] = {
    "caesar": lambda result, text, shift: PROBLEMS["caesar"].reference(result, -shift) == text,
    "prime_factors": lambda result, number: math.prod(p**e for p, e in result) == number,
    "in_base": lambda result, number, base: int(result, base) == number,
    "decimal_expansion": lambda result, a, b: expansion(result) == Fraction(a, b),
    "egyptian_fraction": lambda result, a, b: sum(Fraction(1, n) for n in result) == Fraction(a, b),
    "continued_fraction": lambda result, a, b: fold(result) == Fraction(a, b),
    "as_ranges": lambda result, numbers: spread(result) == numbers,
    "add_days": lambda result, date, days: (
        datetime.date.fromisoformat(result).toordinal() - datetime.date.fromisoformat(date).toordinal() == days
    ),
    "hanoi": lambda result, discs: solved(result, discs),
    "spiral": lambda result, rows: sorted(result) == sorted(n for row in rows for n in row),
}


def fold(terms: list[int]) -> Fraction:
    value = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        value = term + 1 / value
    return value


def spread(text: str) -> list[int]:
    parts = [part.split("..") for part in text.split(",") if part]
    return [number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)]


def solved(moves: list[list[str]], discs: int) -> bool:
    pegs = {"A": list(range(discs, 0, -1)), "B": [], "C": []}
    for source, target in moves:
        disc = pegs[source].pop()
        assert not pegs[target] or pegs[target][-1] > disc
        pegs[target].append(disc)
    return pegs["C"] == list(range(discs, 0, -1)) and len(moves) == 2**discs - 1


ROWS = {task["entry_point"]: task for split in ("test", "train") for task in generate(split)}


@pytest.mark.parametrize("name", PROBLEMS)
def test_examples_hold(name) -> None:
    """The examples were worked out by hand."""
    one = PROBLEMS[name]
    (examples,) = doctest.DocTestFinder(recurse=False).find(one.reference, name, globs=dict(one.reference.__globals__))
    assert examples.examples
    assert doctest.DocTestRunner().run(examples).failed == 0


@pytest.mark.parametrize("name", SECOND)
def test_a_second_solution_agrees(name) -> None:
    for test in ROWS[name]["cases"]:
        other = SECOND[name](*copy.deepcopy(test["arguments"]))
        if other is not None or test["expected"] is None:
            assert other == test["expected"], test


@pytest.mark.parametrize("name", INVERSES)
def test_results_undo_or_fulfil_their_arguments(name) -> None:
    for test in ROWS[name]["cases"]:
        assert INVERSES[name](test["expected"], *copy.deepcopy(test["arguments"])), test


@pytest.mark.parametrize("name", PROBLEMS)
def test_hidden_tests_are_plain_exact_and_not_the_examples(name) -> None:
    tests = ROWS[name]["cases"]
    assert len(tests) >= 4
    assert json.loads(json.dumps(tests)) == tests
    assert json.loads(json.dumps(tests), parse_int=lambda digits: int(digits) if len(digits) < 16 else None) == tests
    shown = re.findall(rf">>> ({name}\(.*\))", PROBLEMS[name].description)
    calls = [f"{name}({', '.join(map(repr, test['arguments']))})" for test in tests]
    assert not {ast.unparse(ast.parse(call)) for call in shown} & {ast.unparse(ast.parse(call)) for call in calls}


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_constant_and_no_echo_passes(name) -> None:
    tests = ROWS[name]["cases"]
    for constant in CONSTANTS:
        assert any(test["expected"] != constant or type(test["expected"]) is not type(constant) for test in tests)
    assert any(not test["arguments"] or test["expected"] != test["arguments"][0] for test in tests)


@pytest.mark.parametrize("name", PROBLEMS)
def test_references_run_on_their_own_and_leave_arguments_alone(name) -> None:
    namespace: dict[str, Any] = {}
    exec(PROBLEMS[name].source(), namespace)
    for test in ROWS[name]["cases"]:
        arguments = copy.deepcopy(test["arguments"])
        assert namespace[name](*arguments) == test["expected"]
        assert arguments == test["arguments"]


def test_questions_show_signature_and_examples_only() -> None:
    question = ROWS["is_leap_year"]["question"]
    assert question.startswith('def is_leap_year(year: int) -> bool:\n    """Whether')
    assert question.endswith('False\n    """')
    assert "return" not in question


def test_there_are_sixty_functions_of_eight_kinds_in_three_difficulties() -> None:
    assert len(TESTS) >= 60
    assert len({task["tags"][0] for task in TESTS}) >= 8
    assert min(sum(level in task["tags"] for task in TESTS) for level in ("easy", "medium", "hard")) >= 15


def test_splits_share_no_function() -> None:
    assert not {task["task_id"] for task in TESTS} & {task["task_id"] for task in generate("train")}
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        next(generate("dev"))


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_programs(name) -> None:
    compile(cheat(name, "asked"), name, "exec")


def answer(name: str) -> str:
    return f"```python\n{PROBLEMS[name].source()}```"


async def test_references_score_one_and_cheats_nothing(bench) -> None:
    environment = bench("python_functions")
    tasks = environment.tasks()
    for task in tasks[::20]:
        assert (await environment.verdict(task, answer(task.task_id))).reward == 1.0, task.task_id
    for trick, task in zip([trick for trick in CHEATS if trick != "endless"], tasks[::5], strict=False):
        assert (await environment.verdict(task, f"```python\n{cheat(trick, task.task_id)}\n```")).reward == 0.0, trick


@pytest.mark.slow
async def test_every_reference_scores_one(bench) -> None:
    for split in ("test", "train"):
        assert await bench("python_functions").mean_reward(lambda task: answer(task.task_id), split) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("trick", CHEATS)
async def test_no_cheat_scores_anywhere(bench, trick) -> None:
    environment = bench("python_functions")
    tasks = environment.tasks()[:: 32 if trick == "endless" else 6]
    for task in tasks:
        assert (await environment.verdict(task, f"```python\n{cheat(trick, task.task_id)}\n```")).reward == 0.0, (
            task.task_id
        )


@pytest.mark.slow
async def test_stubs_and_constants_earn_less_than_a_tenth(bench) -> None:
    environment = bench("python_functions")
    assert await environment.mean_reward(lambda task: f"```python\n{task.question}\n```") == 0.0
    assert await environment.mean_reward(lambda task: "") == 0.0
