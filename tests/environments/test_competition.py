"""The references against slow solutions that try everything, on all small hidden tests and on further random ones."""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from gymflow.environments.competition import problem
from gymflow.environments.competition.cheats import CHEATS
from gymflow.environments.competition.tasks import generate

ROWS = {task["task_id"]: task for task in generate()}
PROBLEMS = dict(problem.ALL)


def numbers(text: str) -> list[int]:
    return list(map(int, text.split()))


def joined(values: Iterable) -> str:
    return " ".join(map(str, values))


def lines(values: Iterable) -> str:
    return "\n".join(map(str, values))


def parts(text: str) -> list[str]:
    return [text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)]


def subsets(items: list) -> Iterable[tuple]:
    return itertools.chain.from_iterable(itertools.combinations(items, n) for n in range(len(items) + 1))


def pairs(text: str) -> str:
    _, total, *row = numbers(text)
    return str(sum(a + b == total for a, b in itertools.combinations(row, 2)))


def bells(text: str) -> str:
    a, b, last = numbers(text)
    return str(len(set(range(a, last + 1, a)) & set(range(b, last + 1, b))))


def street(text: str) -> str:
    _, length, *lamps = numbers(text)
    spots = [0, length] if length > 10**6 else range(length + 1)
    middles = [m for a, b in itertools.pairwise(sorted(lamps)) for m in ((a + b) / 2,)]
    return str(int(2 * max(min(abs(spot - lamp) for lamp in lamps) for spot in [*spots, *middles])))


def ships(text: str) -> str:
    n, days, *weights = numbers(text)
    plans = itertools.combinations(range(1, n), days - 1)
    return str(min(max(sum(weights[a:b]) for a, b in itertools.pairwise([0, *cuts, n])) for cuts in plans))


def ropes(lengths: tuple[int, ...]) -> int:
    if len(lengths) == 1:
        return 0
    costs = []
    for a, b in itertools.combinations(range(len(lengths)), 2):
        rest = tuple(length for place, length in enumerate(lengths) if place not in (a, b))
        costs.append(lengths[a] + lengths[b] + ropes((*rest, lengths[a] + lengths[b])))
    return min(costs)


def talks(text: str) -> str:
    flat = numbers(text)[1:]
    every = list(zip(flat[::2], flat[1::2], strict=True))
    return str(
        max(len(some) for some in subsets(every) if all(a[1] <= b[0] for a, b in itertools.pairwise(sorted(some))))
    )


def wins(heaps: tuple[int, ...], known: dict) -> bool:
    key = tuple(sorted(heap for heap in heaps if heap))
    if key not in known:
        moves = [(*key[:i], left, *key[i + 1 :]) for i, heap in enumerate(key) for left in range(heap)]
        known[key] = any(not wins(move, known) for move in moves)
    return known[key]


def circle(text: str) -> str:
    n, k = numbers(text)
    children = list(range(1, n + 1))
    place = 0
    while len(children) > 1:
        place = (place + k - 1) % len(children)
        children.pop(place)
    return str(children[0])


def jobs(text: str) -> str:
    flat = numbers(text)[1:]
    every = list(zip(flat[::2], flat[1::2], strict=True))
    feasible = (some for some in subsets(every) if all(day <= d for day, (d, _) in enumerate(sorted(some), start=1)))
    return str(max(sum(pay for _, pay in some) for some in feasible))


def knight(text: str) -> str:
    n, *rest = numbers(text)
    goal = (rest[2], rest[3])
    reached = {(rest[0], rest[1])}
    for moves in itertools.count():
        if goal in reached:
            return str(moves)
        grown = reached | {
            (x + a, y + b)
            for x, y in reached
            for a, b in itertools.product((-2, -1, 1, 2), repeat=2)
            if a * a + b * b == 5 and 1 <= x + a <= n and 1 <= y + b <= n
        }
        if grown == reached:
            return "-1"
        reached = grown
    raise AssertionError


def cables(text: str) -> str:
    groups: list[set[str]] = []
    answers = []
    for line in text.splitlines()[1:]:
        sign, a, b = line.split()
        touched = [group for group in groups if a in group or b in group]
        if sign == "+":
            groups = [group for group in groups if group not in touched] + [{a, b}.union(*touched)]
        else:
            answers.append("yes" if a == b or any(a in group and b in group for group in groups) else "no")
    return lines(answers) or "none"


def ways(text: str) -> str:
    n, _, *flat = numbers(text)
    length = [0] + [math.inf] * (n - 1)
    for _ in range(n):
        for a, b, c in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            length[b - 1] = min(length[b - 1], length[a - 1] + c)
    return joined(-1 if way == math.inf else way for way in length)


def pipes(text: str) -> str:
    n, _, *flat = numbers(text)
    edges = list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
    costs = []
    for some in itertools.combinations(edges, n - 1):
        reached = {1}
        for _ in range(n):
            reached |= {end for a, b, _ in some for end in (a, b) if a in reached or b in reached}
        if len(reached) == n:
            costs.append(sum(cost for _, _, cost in some))
    return str(min(costs))


def house(text: str) -> str:
    n, _, *flat = numbers(text)
    days, pairs = flat[:n], list(zip(flat[n::2], flat[n + 1 :: 2], strict=True))

    def ends(step: int) -> int:
        return days[step - 1] + max((ends(a) for a, b in pairs if b == step), default=0)

    return str(max(map(ends, range(1, n + 1))))


def square(text: str) -> str:
    n, *rows = text.split()
    sides = [
        side
        for side in range(1, int(n) + 1)
        for y in range(int(n) - side + 1)
        for x in range(int(n) - side + 1)
        if all(row[x : x + side] == "#" * side for row in rows[y : y + side])
    ]
    return str(max(sides, default=0))


def is_balanced(text: str) -> bool:
    while "()" in text:
        text = text.replace("()", "")
    return not text


def robot(text: str) -> str:
    place, heading = 0j, 1j
    for command in text.strip():
        place += heading if command == "F" else 0
        heading *= {"F": 1, "L": 1j, "R": -1j}[command]
    return f"{int(place.real)} {int(place.imag)}"


def frequent(text: str) -> str:
    _, k, *words = text.split()
    return lines(f"{word} {n}" for word, n in sorted(Counter(words).items(), key=lambda x: (-x[1], x[0]))[: int(k)])


def common(text: str) -> str:
    first, second = text.split()
    rows = {"".join(some) for some in subsets(list(first))}
    return str(max(len(row) for row in rows if row in {"".join(some) for some in subsets(list(second))}))


def tilings(width: int) -> int:
    """Coverings of 2 x width, square by square."""

    def cover(covered: frozenset) -> int:
        free = [spot for spot in itertools.product(range(width), range(2)) if spot not in covered]
        if not free:
            return 1
        x, y = free[0]
        return sum(cover(covered | {(x, y), other}) for other in ((x + 1, y), (x, y + 1)) if other in free)

    return cover(frozenset())


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def change(text: str) -> str:
    _, amount, *coins = numbers(text)
    sums, count = {0}, 0
    while amount not in sums:
        grown = {s + coin for s in sums for coin in coins if s + coin <= amount}
        if not grown:
            return "-1"
        sums, count = grown, count + 1
    return str(count)


def apples(text: str) -> str:
    n, *flat = numbers(text)
    walks = itertools.combinations(range(2 * n - 2), n - 1)

    def collected(downs: tuple[int, ...]) -> int:
        places = itertools.accumulate((n if step in downs else 1 for step in range(2 * n - 2)), initial=0)
        return sum(flat[place] for place in places)

    return str(max(map(collected, walks)))


BRUTE: dict[str, tuple[int, Callable[[str], str]]] = {
    "pairs-with-sum": (300, pairs),
    "range-sums": (
        300,
        lambda t: lines(
            sum(numbers(row[1])[int(a) - 1 : int(b)]) for row in [t.splitlines()] for a, b in map(str.split, row[2:])
        ),
    ),
    "buy-and-sell": (300, lambda t: str(max([b - a for a, b in itertools.combinations(numbers(t)[1:], 2)] + [0]))),
    "street-lamps": (300, street),
    "shipping": (12, ships),
    "window-maximum": (
        300,
        lambda t: joined(max(numbers(t)[i : i + numbers(t)[1]]) for i in range(2, numbers(t)[0] - numbers(t)[1] + 3)),
    ),
    "next-larger": (
        300,
        lambda t: joined(
            next((b for b in numbers(t)[i + 1 :] if b > a), -1) for i, a in enumerate(numbers(t)[1:], start=1)
        ),
    ),
    "neighbour-swaps": (300, lambda t: str(sum(a > b for a, b in itertools.combinations(numbers(t)[1:], 2)))),
    "knight-moves": (20, knight),
    "cables": (300, cables),
    "shortest-ways": (300, ways),
    "water-pipes": (4, pipes),
    "building-steps": (8, house),
    "largest-square": (20, square),
    "tying-ropes": (4, lambda t: str(ropes(tuple(numbers(t)[1:])))),
    "most-talks": (12, talks),
    "heaps-of-stones": (0, lambda t: "first" if wins(tuple(numbers(t)[1:]), {}) else "second"),
    "two-piles": (9, lambda t: str(min(abs(sum(numbers(t)[1:]) - 2 * sum(some)) for some in subsets(numbers(t)[1:])))),
    "last-child": (300, circle),
    "paid-jobs": (12, jobs),
    "longest-balanced": (40, lambda t: str(max([len(part) for part in parts(t) if is_balanced(part)] + [0]))),
    "smallest-period": (300, lambda t: str(next(p for p in range(1, len(t) + 1) if t[p:] == t[:-p] or p == len(t)))),
    "robot": (3000, robot),
    "frequent-words": (3000, frequent),
    "common-letters": (8, common),
    "different-parts": (30, lambda t: str(len(set(parts(t))))),
    "few-letters": (
        40,
        lambda t: str(max(len(p) for p in parts(t.split()[2]) if len(set(p)) <= int(t.split()[1]))),
    ),
    "floor-tiles": (4, lambda t: str(tilings(int(t)))),
    "primes-between": (
        40,
        lambda t: lines(
            sum(map(is_prime, range(*(int(a), int(b) + 1)))) for a, b in map(str.split, t.splitlines()[1:])
        ),
    ),
    "rising-row": (
        12,
        lambda t: str(
            max(len(some) for some in subsets(numbers(t)[1:]) if all(a < b for a, b in itertools.pairwise(some)))
        ),
    ),
    "two-bells": (3000, bells),
    "long-remainder": (3000, lambda t: str(int(t.split()[0]) % int(t.split()[1]))),
    "making-change": (300, change),
    "apples": (8, apples),
}
"""Problem -> up to which size the slow solution is quick enough, and the solution."""


def test_every_problem_has_a_slow_solution() -> None:
    assert sorted(BRUTE) == sorted(PROBLEMS)


@pytest.mark.parametrize("name", PROBLEMS)
def test_slow_solutions_agree_on_small_inputs(name) -> None:
    one = PROBLEMS[name]
    largest, slow = BRUTE[name]
    sizes = [size for size in one.sizes if size <= largest]
    inputs = [one.example]
    inputs += [one.inputs(problem.Draw(f"competition {name} {index}"), size) for index, size in enumerate(sizes)]
    inputs += [one.inputs(problem.Draw(f"further {name} {n}"), sizes[n % len(sizes)]) for n in range(4 if sizes else 0)]
    for text in inputs:
        assert slow(text) == one.reference(text), text


def test_heaps_are_won_as_trying_all_moves_says() -> None:
    known: dict = {}
    for heaps in itertools.product(range(1, 5), repeat=3):
        text = f"3\n{joined(heaps)}"
        assert PROBLEMS["heaps-of-stones"].reference(text) == ("first" if wins(heaps, known) else "second")


@pytest.mark.parametrize("name", ROWS)
def test_no_constant_output_passes(name) -> None:
    outputs = Counter(test["output"] for test in ROWS[name]["tests"])
    assert len(ROWS[name]["tests"]) >= 8
    assert max(outputs.values()) <= 0.6 * sum(outputs.values())


@pytest.mark.parametrize("name", ROWS)
def test_questions_have_an_example_that_is_no_hidden_test(name) -> None:
    row = ROWS[name]
    shown = re.search(r"Example input:\n(.*)\n\nExample output:\n(.*)\Z", row["question"], re.DOTALL)
    assert shown[2] == PROBLEMS[name].reference(shown[1])
    assert shown[1] not in [test["input"].strip() for test in row["tests"]]


def test_references_are_whole_programs(tmp_path) -> None:
    for one in PROBLEMS.values():
        program = compile(one.source(), one.name, "exec")
        assert {"sys", "print"} <= set(program.co_names)


def test_rows_are_plain_and_small() -> None:
    text = json.dumps(list(ROWS.values()))
    assert json.loads(text) == list(ROWS.values())
    assert len(text) < 2_000_000


def test_there_are_thirty_problems_of_five_kinds_in_three_difficulties() -> None:
    assert len(ROWS) >= 30
    assert len({task["tags"][0] for task in ROWS.values()}) >= 5
    assert min(sum(level in task["tags"] for task in ROWS.values()) for level in ("easy", "medium", "hard")) >= 8


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_programs(name) -> None:
    compile(CHEATS[name], name, "exec")


def answer(program: str) -> str:
    return f"```python\n{program}\n```"


async def test_references_score_one_and_cheats_nothing(bench) -> None:
    environment = bench("competition")
    tasks = environment.tasks()
    for task in tasks[::17]:
        assert (await environment.verdict(task, answer(PROBLEMS[task.task_id].source()))).reward == 1.0, task.task_id
    for cheat, task in zip([cheat for cheat in CHEATS if cheat != "endless"], tasks, strict=False):
        assert (await environment.verdict(task, answer(CHEATS[cheat]))).reward == 0.0, cheat


@pytest.mark.slow
async def test_every_reference_scores_one(bench) -> None:
    assert await bench("competition").mean_reward(lambda task: answer(PROBLEMS[task.task_id].source())) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
async def test_no_cheat_scores_anywhere(bench, cheat) -> None:
    environment = bench("competition")
    for task in environment.tasks()[:: 17 if cheat == "endless" else 3]:
        assert (await environment.verdict(task, answer(CHEATS[cheat]))).reward == 0.0, task.task_id


async def test_fixtures_have_their_rewards(bench) -> None:
    await bench("competition").check_fixtures()
