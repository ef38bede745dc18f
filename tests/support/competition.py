"""Slow solutions of the competition's problems, which try everything: written apart from the references that they check."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable


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


def compositions(total: int) -> Iterable[tuple[int, ...]]:
    """All ways to write a number as a sum, in every order."""
    if total == 0:
        yield ()
    for first in range(1, total + 1):
        for rest in compositions(total - first):
            yield (first, *rest)


def water(text: str) -> str:
    walls = numbers(text)[1:]
    return str(sum(min(max(walls[: i + 1]), max(walls[i:])) - wall for i, wall in enumerate(walls)))


def poster(text: str) -> str:
    heights = numbers(text)[1:]
    spans = itertools.combinations(range(len(heights) + 1), 2)
    return str(max((b - a) * min(heights[a:b]) for a, b in spans))


def thirds(text: str) -> str:
    row = numbers(text)[1:]
    cuts = itertools.combinations(range(1, len(row)), 2)
    return str(sum(sum(row[:a]) == sum(row[a:b]) == sum(row[b:]) for a, b in cuts))


def medians(text: str) -> str:
    row = numbers(text)[1:]
    return joined(sorted(row[:n])[(n - 1) // 2] for n in range(1, len(row) + 1))


def lead(points: tuple[int, ...]) -> int:
    return max(points[0] - lead(points[1:]), points[-1] - lead(points[:-1])) if points else 0


def tolls(text: str) -> str:
    n, *row = numbers(text)
    ways = (tuple(itertools.accumulate(steps)) for steps in compositions(n) if max(steps) <= 2)
    return str(min(sum(row[stair - 1] for stair in way) for way in ways))


def trips(weights: tuple[int, ...], limit: int) -> int:
    if not weights:
        return 0
    first, rest = weights[0], weights[1:]
    best = 1 + trips(rest, limit)
    for place, other in enumerate(rest):
        if first + other <= limit:
            best = min(best, 1 + trips(rest[:place] + rest[place + 1 :], limit))
    return best


def petrol(text: str) -> str:
    n, *row = numbers(text)
    for start in range(n):
        order = [*range(start, n), *range(start)]
        tanks = itertools.accumulate(row[place] - row[n + place] for place in order)
        if all(tank >= 0 for tank in tanks):
            return str(start + 1)
    return "-1"


def rope(text: str) -> str:
    n, *prices = numbers(text)
    return str(max(sum(prices[piece - 1] for piece in pieces) for pieces in compositions(n)))


def drops(glasses: int, floors: int) -> int:
    if floors == 0 or glasses == 1:
        return floors
    return 1 + min(max(drops(glasses - 1, f - 1), drops(glasses, floors - f)) for f in range(1, floors + 1))


def harvest(text: str) -> str:
    n, *fruit = numbers(text)
    choices = subsets(list(range(n)))
    return str(
        max(sum(fruit[i] for i in some) for some in choices if all(b - a > 1 for a, b in itertools.pairwise(some)))
    )


def teams(text: str) -> str:
    n, _, *flat = numbers(text)
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    splits = itertools.product((0, 1), repeat=n)
    return "yes" if any(all(team[a - 1] != team[b - 1] for a, b in pairs) for team in splits) else "no"


def all_ways(n: int, edges: list[tuple[int, int, int]]) -> dict[tuple[int, int], float]:
    """The shortest ways between all pairs, by the algorithm of Floyd and Warshall."""
    way = {(a, b): math.inf if a != b else 0 for a in range(1, n + 1) for b in range(1, n + 1)}
    for a, b, length in edges:
        way[a, b] = way[b, a] = min(way[a, b], length)
    for over, a, b in itertools.product(range(1, n + 1), repeat=3):
        way[a, b] = min(way[a, b], way[a, over] + way[over, b])
    return way


def tree(text: str) -> str:
    n, *flat = numbers(text)
    return str(max(all_ways(n, list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))).values()))


def bridges(text: str) -> str:
    n, _, *flat = numbers(text)
    edges = [(a, b, 1) for a, b in zip(flat[::2], flat[1::2], strict=True)]
    return str(sum(math.inf in all_ways(n, [e for e in edges if e != edge]).values() for edge in edges))


def biggest(text: str) -> str:
    _, *rows = text.split()
    island = {(y, x): (y, x) for y, row in enumerate(rows) for x, sign in enumerate(row) if sign == "#"}
    for _ in island:
        for y, x in island:
            near = [
                island[y, x],
                island.get((y + 1, x)),
                island.get((y, x + 1)),
                island.get((y - 1, x)),
                island.get((y, x - 1)),
            ]
            island[y, x] = min(one for one in near if one)
    return str(max(Counter(island.values()).values(), default=0))


def fire(text: str) -> str:
    _, *rows = text.split()
    trees = {
        (y, x): 0 if sign == "x" else math.inf
        for y, row in enumerate(rows)
        for x, sign in enumerate(row)
        if sign != "."
    }
    for _ in trees:
        for y, x in trees:
            near = [trees.get(place, math.inf) for place in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1))]
            trees[y, x] = min(trees[y, x], 1 + min(near))
    return str(max(trees.values()) if math.inf not in trees.values() else -1)


def rooms(text: str) -> str:
    _, *doors = numbers(text)
    visited = [1]
    while (following := doors[visited[-1] - 1]) not in visited:
        visited.append(following)
    return str(len(visited) - visited.index(following))


def mirrors(word: str) -> int:
    cuts = (tuple(itertools.accumulate(lengths)) for lengths in compositions(len(word)))
    pieces = ([word[a:b] for a, b in itertools.pairwise((0, *cut))] for cut in cuts)
    return min(len(some) for some in pieces if all(piece == piece[::-1] for piece in some))


def chain(text: str) -> str:
    first, last, _, *words = text.split()
    for length in range(len(words)):
        for way in itertools.permutations([word for word in words if word not in (first, last)], max(0, length - 1)):
            whole = [first, *way, last] if length else [first]
            if whole[-1] == last and all(sum(map(str.__ne__, a, b)) == 1 for a, b in itertools.pairwise(whole)):
                return str(length)
    return "-1"


def pattern(text: str) -> str:
    first, second = text.split()
    return "yes" if [first.index(a) for a in first] == [second.index(b) for b in second] else "no"


def squares(total: int) -> int:
    return 0 if total == 0 else 1 + min(squares(total - root * root) for root in range(1, math.isqrt(total) + 1))


def triangles(text: str) -> str:
    p = int(text)
    legs = ((a, b) for a in range(1, p) for b in range(a, p - a))
    return str(sum(a * a + b * b == (p - a - b) ** 2 for a, b in legs))


def shallow(text: str) -> str:
    n, depth = numbers(text)
    levels = (tuple(itertools.accumulate(signs)) for signs in itertools.product((1, -1), repeat=2 * n))
    return str(sum(min(row) >= 0 and max(row) <= depth and row[-1] == 0 for row in levels))


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
    "equal-run": (300, lambda t: str(max(len(list(run)) for _, run in itertools.groupby(t.split()[1:])))),
    "majority": (
        300,
        lambda t: str(next((v for v, n in Counter(numbers(t)[1:]).items() if n > numbers(t)[0] / 2), -1)),
    ),
    "smallest-missing": (300, lambda t: str(min(set(range(1, 400)) - set(numbers(t)[1:])))),
    "trapped-rain": (300, water),
    "largest-poster": (300, poster),
    "three-parts": (40, thirds),
    "running-median": (300, medians),
    "cards-from-the-ends": (7, lambda t: str(lead(tuple(numbers(t)[1:])))),
    "stair-tolls": (12, tolls),
    "boat-trips": (7, lambda t: str(trips(tuple(numbers(t)[2:]), numbers(t)[1]))),
    "petrol-stations": (300, petrol),
    "rope-pieces": (12, rope),
    "dropping-glasses": (8, lambda t: str(drops(*numbers(t)))),
    "no-neighbours": (12, harvest),
    "two-teams": (10, teams),
    "longest-way": (40, tree),
    "needed-bridges": (12, bridges),
    "largest-island": (8, biggest),
    "forest-fire": (8, fire),
    "circle-of-rooms": (300, rooms),
    "unpack": (300, lambda t: re.sub(r"([a-z])(\d+)", lambda part: part[1] * int(part[2]), t)),
    "letter-groups": (
        300,
        lambda t: joined(
            (len(g := Counter(frozenset(Counter(word).items()) for word in t.split()[1:])), max(g.values()))
        ),
    ),
    "mirror-parts": (12, lambda t: str(mirrors(t))),
    "word-chain": (4, chain),
    "same-pattern": (300, pattern),
    "digit-sums": (
        6,
        lambda t: str(sum(sum(map(int, str(n))) == numbers(t)[1] for n in range(1, numbers(t)[0] + 1))),
    ),
    "fewest-squares": (12, lambda t: str(squares(int(t)))),
    "right-triangles": (120, triangles),
    "binary-gap": (50, lambda t: str(max(map(len, f"{int(t):b}".strip("0").split("1"))))),
    "large-power": (3, lambda t: str(pow(*numbers(t)[:2]) % numbers(t)[2])),
    "shallow-brackets": (6, shallow),
}
"""Problem -> up to which size the slow solution is quick enough, and the solution."""
