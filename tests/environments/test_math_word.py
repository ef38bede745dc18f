"""Every answer is worked out a second time by another route than the schema's own: trying all cases, simulating the story,
or putting the answer into the conditions."""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, combinations, permutations, product
from types import SimpleNamespace as Given

import pytest
from gymflow.environments.math_word.problem import NAMES, Draw, decimal, dollars, written
from gymflow.environments.math_word.tasks import SCHEMAS, generate

from gymflow.config import merge_environment
from gymflow.contracts.run import EnvironmentSelection
from gymflow.datasets import rendered
from gymflow.registry import Registry
from gymflow.runtime.components import verifier_parameters

TESTS = list(generate("test"))


def value(text: str) -> Fraction | float:
    """The number that an expected answer stands for; exact unless it holds a root or π."""
    if fraction := re.fullmatch(r"\\frac\{(\d+)\}\{(\d+)\}", text):
        return Fraction(int(fraction[1]), int(fraction[2]))
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return Fraction(text)
    if symbolic := re.fullmatch(r"(?:(\d+)\+)?(\d*)(?:\\sqrt\{(\d+)\}|(\\pi))", text):
        plus, times, root, pi = symbolic.groups()
        return int(plus or 0) + int(times or 1) * (math.pi if pi else math.sqrt(int(root)))
    raise AssertionError(f"cannot read {text!r}")


def first(condition: Callable[[int], bool], start: int = 0) -> int:
    """The smallest whole number that meets the condition."""
    return next(n for n in range(start, 100_000) if condition(n))


def every(low: int, high: int, condition: Callable[[int], bool]) -> list[int]:
    return [n for n in range(low, high + 1) if condition(n)]


def cents(text: str) -> int:
    return int(text.replace(".", ""))


def minutes(clock: str) -> int:
    hours, _, rest = clock.partition(":")
    return int(hours) * 60 + int(rest)


def balance(cents: Fraction, rate: int, years: int) -> Fraction:
    return cents if years == 0 else balance(cents + cents * rate / 100, rate, years - 1)


def seatings(guests: int) -> int:
    """Seatings with guest 0 in place, in which guests 1 and 2 sit side by side."""
    found = 0
    for order in permutations(range(1, guests)):
        circle = (0, *order)
        found += abs(circle.index(1) - circle.index(2)) in (1, guests - 1)
    return found


def routes(right: int, up: int, blocked: tuple[int, int]) -> int:
    def count(x: int, y: int) -> int:
        if x < 0 or y < 0 or (x, y) == blocked:
            return 0
        return 1 if (x, y) == (0, 0) else count(x - 1, y) + count(x, y - 1)

    return count(right, up)


def coin_jars(g: Given) -> list[int]:
    return every(0, g.count, lambda n: 25 * n + 10 * (g.count - n) == g.total)


def zoo_prices(g: Given) -> list[int]:
    return [
        adult
        for adult, child in product(range(1, 60), repeat=2)
        if g.adults_1 * adult + g.children_1 * child == g.total_1
        and g.adults_2 * adult + g.children_2 * child == g.total_2
    ]


def painted(edge: int) -> int:
    return sum(sum(at in (0, edge - 1) for at in cube) == 2 for cube in product(range(edge), repeat=3))


def stair_walks(stairs: int) -> int:
    return sum(sum(walk) == stairs for steps in range(stairs + 1) for walk in product((1, 2), repeat=steps))


def sixth(g: Given) -> int:
    return list(accumulate(range(5), lambda term, _: g.times * term - g.less, initial=g.first))[-1]


def bounces(g: Given) -> float:
    height, way = float(g.height), float(g.height)
    for _ in range(2000):
        height *= g.up / g.down
        way += 2 * height
    return way


def catches_up(g: Given) -> int:
    return first(lambda t: g.fast * t >= g.slow * (g.lead + t), 1)


CHECKS: dict[str, Callable[[Given, Fraction], object]] = {
    "cyclist": lambda g, a: a == sum(Fraction(g.speed, 2) for _ in range(2 * g.hours + 1)),
    "trains-meeting": lambda g, a: a == first(lambda t: g.first * t >= g.distance - g.second * t),
    "catching-up": lambda g, a: a == catches_up(g) and g.fast * a == g.slow * (g.lead + a),
    "average-speed": lambda g, a: Fraction(100, g.out) + Fraction(100, g.back) == 200 / a,
    "river": lambda g, a: Fraction(g.distance, g.down) - a == Fraction(g.distance, g.up) + a,
    "clock-hands": lambda g, a: 6 * a == 30 * g.hour + a / 2 and 0 < a < 60,
    "sprinter": lambda g, a: a * 1000 * g.seconds == g.metres * 3600,
    "timetable": lambda g, a: a == minutes(g.arrival) - minutes(g.departure),
    "two-painters": lambda g, a: a / g.x + a / g.y == 1,
    "cracked-tank": lambda g, a: a / g.fill - a / g.drain == 1,
    "bakers": lambda g, a: g.few * g.hours == g.many * a,
    "pump-joins": lambda g, a: (g.start + a) / g.x + a / g.y == 1 and a > 0,
    "bottling": lambda g, a: Fraction(g.bottles, g.minutes) == a / g.later,
    "provisions": lambda g, a: g.people * g.days == g.people * g.spent + (g.people + g.more) * a,
    "diluting": lambda g, a: g.litres * g.before == (g.litres + a) * g.after,
    "coffee-blend": lambda g, a: a * (g.p + g.q) == g.p * g.a + g.q * g.b,
    "acid": lambda g, a: a * g.strong + (g.total - a) * g.weak == g.total * g.target and 0 < a < g.total,
    "cask": lambda g, a: a == g.litres * Fraction(g.litres - g.out, g.litres) * Fraction(g.litres - g.out, g.litres),
    "metal-block": lambda g, a: a * (g.a * g.b * g.c) == g.grams,
    "discount": lambda g, a: a + Fraction(g.price * g.percent, 100) == g.price,
    "before-the-rise": lambda g, a: a + a * g.percent / 100 == g.after,
    "up-and-down": lambda g, a: 100 * (1 + Fraction(g.up, 100)) * (1 - Fraction(g.down, 100)) == 100 - a and a > 0,
    "compound-interest": lambda g, a: a == balance(Fraction(g.amount), g.rate, g.years),
    "change-due": lambda g, a: a * 100 + sum(cents(g.each) for _ in range(g.count)) == g.note * 100 and a > 0,
    "dinner": lambda g, a: a * g.friends == g.bill + Fraction(g.bill * g.percent, 100),
    "coin-jar": lambda g, a: coin_jars(g) == [a],
    "phone-plans": lambda g, a: 100 * g.fee_a + a * g.cents_a == 100 * g.fee_b + a * g.cents_b,
    "honey": lambda g, a: (
        a == Fraction(100 * cents(g.price_small), g.small) - Fraction(100 * cents(g.price_large), g.large) > 0
    ),
    "saving-up": lambda g, a: a == first(lambda weeks: g.saved + weeks * g.weekly >= g.price),
    "twice-as-old": lambda g, a: g.age + g.years == 2 * a,
    "mother-and-son": lambda g, a: (
        a == first(lambda n: g.mother + n == g.times * (g.son + n), 1) and 20 <= g.mother - g.son <= 35
    ),
    "together": lambda g, a: a - g.years == g.times * (g.total - a - g.years),
    "four-games": lambda g, a: a == Fraction(g.a + g.b + g.c + g.d, 4) and min(g.a, g.b, g.c, g.d) > 0,
    "next-test": lambda g, a: Fraction(g.tests * g.mean + a, g.tests + 1) == g.goal,
    "club": lambda g, a: (
        a == Fraction(sum([g.junior_age] * g.juniors + [g.senior_age] * g.seniors), g.juniors + g.seniors)
    ),
    "largest-left-out": lambda g, a: Fraction(g.count * g.mean - a, g.count - 1) == g.rest and a > g.mean,
    "garden-fence": lambda g, a: a == g.length + g.width + g.length + g.width - g.gate,
    "pool-path": lambda g, a: a == 2 * g.path * g.length + 2 * g.path * g.width + 4 * g.path**2,
    "ladder": lambda g, a: a**2 + g.foot**2 == g.ladder**2,
    "tile-diagonal": lambda g, a: math.isclose(a**2, 2 * g.area),
    "flower-bed": lambda g, a: math.isclose(a, math.sin(math.pi / 3) / 2 * (g.perimeter / 3) ** 2),
    "tin": lambda g, a: math.isclose(a, math.pi * g.radius**2 * g.height),
    "painted-cube": lambda g, a: a == painted(g.edge),
    "floor-plan": lambda g, a: a == Fraction(g.a * g.scale, 100) * Fraction(g.b * g.scale, 100),
    "third-angle": lambda g, a: a + g.a + g.b == 180 and a > 0,
    "polygon": lambda g, a: (a - 2) * 180 == a * g.angle,
    "crate": lambda g, a: a**2 == g.a**2 + g.b**2 + g.c**2,
    "tree-shadow": lambda g, a: a / g.tree_shadow == Fraction(g.post, g.post_shadow),
    "rain-on-roof": lambda g, a: a == Fraction(g.rain, 1000) * g.length * g.width * 1000,
    "outfits": lambda g, a: a == len(list(product(range(g.shirts), range(g.trousers), range(g.hats)))),
    "handshakes": lambda g, a: a == len(list(combinations(range(g.people), 2))),
    "quiz-team": lambda g, a: (
        a == len(list(product(combinations(range(g.red), g.from_red), combinations(range(g.blue), g.from_blue))))
    ),
    "letters": lambda g, a: a == len(set(permutations(g.word))),
    "grid-routes": lambda g, a: a == routes(g.right, g.up, (g.block_right, g.block_up)),
    "rising-digits": lambda g, a: (
        a == sum(list(str(n)) == sorted(set(str(n))) for n in range(10 ** (g.digits - 1), 10**g.digits))
    ),
    "neither-divides": lambda g, a: a == len(every(1, g.top, lambda n: n % g.p and n % g.q)),
    "knock-out": lambda g, a: g.players - a == 1,
    "round-table": lambda g, a: a == seatings(g.guests),
    "stairs": lambda g, a: a == stair_walks(g.stairs),
    "not-green": lambda g, a: a == 1 - Fraction(g.green, g.red + g.green + g.blue),
    "dice-total": lambda g, a: a == Fraction(sum(sum(dice) == g.total for dice in product(range(1, 7), repeat=2)), 36),
    "two-socks": lambda g, a: (
        a
        == Fraction(
            sum(x == y for x, y in permutations("b" * g.black + "w" * g.white, 2)),
            (g.black + g.white) * (g.black + g.white - 1),
        )
    ),
    "at-least-heads": lambda g, a: (
        a == Fraction(sum(sum(toss) >= g.heads for toss in product((0, 1), repeat=g.tosses)), 2**g.tosses)
    ),
    "raffle": lambda g, a: a * g.tickets == sum([g.first] + [g.second] * g.others),
    "two-alarms": lambda g, a: a / 100 == Fraction(g.a, 100) + Fraction(g.b, 100) - Fraction(g.a * g.b, 10000),
    "three-consecutive": lambda g, a: a + (a - 1) + (a - 2) == g.total,
    "largest-tiles": lambda g, a: a == max(every(1, g.b, lambda n: g.a % n == g.b % n == 0)),
    "three-buses": lambda g, a: a == first(lambda n: n % g.a == n % g.b == n % g.c == 0, 1),
    "egg-boxes": lambda g, a: every(1, g.limit - 1, lambda n: n % g.p == g.left_p and n % g.q == g.left_q) == [a],
    "last-digit": lambda g, a: str(int(a)) == str(g.base**g.exponent)[-1],
    "swapped-digits": lambda g, a: (
        every(10, 99, lambda n: n // 10 + n % 10 == g.total and int(str(n)[::-1]) - n == g.more) == [a]
    ),
    "divisors": lambda g, a: a == len(every(1, g.number, lambda n: g.number % n == 0)),
    "ending-zeros": lambda g, a: a == len(re.search("0*$", str(math.factorial(g.top)))[0]),
    "power-remainder": lambda g, a: a == g.base**g.exponent % g.modulus,
    "theatre-row": lambda g, a: a == list(accumulate([g.step] * (g.row - 1), initial=g.first))[-1],
    "log-stack": lambda g, a: a == sum(range(g.top, g.bottom + 1)),
    "bouncing-ball": lambda g, a: math.isclose(a, bounces(g)),
    "duckweed": lambda g, a: (
        2 ** int(g.full - a) == {"half": 2, "a quarter": 4, "an eighth": 8, "a sixteenth": 16}[g.part]
    ),
    "sixth-term": lambda g, a: a == sixth(g),
    "holiday-reading": lambda g, a: a == sum(g.first + g.more * day for day in range(g.days)),
    "think-of-a-number": lambda g, a: a * g.times + g.plus == g.result,
    "goats-and-hens": lambda g, a: every(0, g.heads, lambda n: 4 * n + 2 * (g.heads - n) == g.legs) == [a],
    "zoo-tickets": lambda g, a: zoo_prices(g) == [a],
    "meadow": lambda g, a: a == 2 * (2 * first(lambda n: n * (n + g.longer) == g.area) + g.longer),
    "reciprocals": lambda g, a: any(
        x + y == g.total and x * y == g.product and Fraction(1, x) + Fraction(1, y) == a
        for x, y in product(range(1, g.total), repeat=2)
    ),
    "pen-ruler-notebook": lambda g, a: (g.pen_ruler - a) + a + (g.ruler_notebook - a) == g.all_three and a > 0,
    "its-own-square": lambda g, a: math.isclose(a * a, g.more + g.times * a) and a > 0 and g.more > 0,
    "cut-rope": lambda g, a: a + (a + g.longer) == g.length,
    "fahrenheit": lambda g, a: a * Fraction(18, 10) + 32 == g.fahrenheit,
    "cups-of-milk": lambda g, a: a * 1000 == sum(240 for _ in range(g.cups)),
}


def test_every_schema_has_a_second_solution() -> None:
    assert sorted(CHECKS) == sorted(schema.name for schema in SCHEMAS)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_answers_hold_when_worked_out_another_way(schema) -> None:
    for index in range(4):
        given, answer = schema.fill(Draw(f"second solution {schema.name} {index}"))
        assert CHECKS[schema.name](Given(**given), value(written(answer))), (given, answer)


@pytest.mark.parametrize("row", TESTS, ids=lambda row: row["task_id"])
def test_answers_of_the_test_split_hold(row) -> None:
    schema = next(schema for schema in SCHEMAS if f"template-{schema.name}" in row["tags"])
    pattern = re.sub(r"\\\{(\w+)\\\}", lambda gap: f"(?P<{gap[1]}>.+?)", re.escape(schema.text), count=0)
    for name in set(re.findall(r"\(\?P<(\w+)>", pattern)):
        head, gap, rest = pattern.partition(f"(?P<{name}>.+?)")
        pattern = head + gap + rest.replace(gap, f"(?P={name})")
    read = re.fullmatch(pattern, row["question"]).groupdict()
    given = Given(**{name: int(text) if text.isdigit() else text for name, text in read.items()})
    assert CHECKS[schema.name](given, value(row["expected_answer"]))


def test_texts_use_each_drawn_number() -> None:
    for schema in SCHEMAS:
        given, _ = schema.fill(Draw("gaps"))
        assert set(re.findall(r"\{(\w+)\}", schema.text)) == set(given), schema.name


def test_there_are_sixty_tasks_of_eight_kinds_in_three_difficulties() -> None:
    assert len(TESTS) >= 60
    assert len({row["tags"][0] for row in TESTS}) >= 8
    counts = [sum(level in row["tags"] for row in TESTS) for level in ("easy", "medium", "hard")]
    assert min(counts) >= 20


def test_no_two_tasks_are_the_same_without_numbers_and_names() -> None:
    bare = [re.sub(rf"[\d.]+|\b({'|'.join(NAMES)})\b", "#", row["question"]) for row in TESTS]
    assert len(set(bare)) == len(bare)


def test_rows_do_not_depend_on_how_many_are_asked_for() -> None:
    few = {row["task_id"]: row for row in generate("train", per_schema=2)}
    many = {row["task_id"]: row for row in generate("train", per_schema=4)}
    assert few.items() <= many.items()


def test_training_questions_are_not_test_questions() -> None:
    train = list(generate("train", per_schema=4))
    assert len({row["question"] for row in train}) == len({row["task_id"] for row in train}) == len(train) > 300
    assert not {row["question"] for row in train} & {row["question"] for row in TESTS}


def test_rows_are_pinned() -> None:
    """Stored rollouts are compared by their tasks; a changed row must be a decision."""
    assert [TESTS[i]["question"] for i in (0, 59)] == [
        "A cyclist rides at a steady 12 km/h. How many kilometres are covered in 3 hours and 30 minutes?",
        "A bag holds 9 red, 5 green and 6 blue marbles. One is drawn blindly. What is the probability that it is not "
        "green? Give a fraction.",
    ]


def test_numbers_are_drawn_from_the_whole_range() -> None:
    draw = Draw("range")
    assert {draw(2, 5) for _ in range(100)} == {2, 3, 4, 5}
    assert {draw.two(1, 3) for _ in range(100)} == {(1, 2), (1, 3), (2, 3)}


def test_answers_are_written_for_readers() -> None:
    assert [decimal(Fraction(n, 100)) for n in (5, 110, -1225, 300)] == ["0.05", "1.1", "-12.25", "3"]
    assert [dollars(n) for n in (5, 450)] == ["0.05", "4.50"]
    assert [written(a) for a in (7, Fraction(8, 2), Fraction(3, 4), r"2\pi")] == ["7", "4", r"\frac{3}{4}", r"2\pi"]
    with pytest.raises(ValueError, match="no short decimal"):
        decimal(Fraction(1, 3))


def test_unknown_splits_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        next(generate("dev"))


async def test_reference_answers_score_one_and_guesses_next_to_nothing(bench) -> None:
    environment = bench("math_word")
    draw = Draw("guesses")
    assert await environment.mean_reward(lambda task: rf"\boxed{{{task.expected_answer}}}") == 1.0
    assert await environment.mean_reward(lambda task: rf"\boxed{{{task.expected_answer}}}", split="train") == 1.0
    assert await environment.mean_reward(lambda task: rf"\boxed{{{draw(0, 100)}}}") < 0.1
    assert await environment.mean_reward(lambda task: "") == 0.0


@pytest.mark.parametrize("position", [0, -1])
async def test_repeating_a_number_of_the_question_earns_next_to_nothing(bench, position) -> None:
    def echo(task) -> str:
        return rf"\boxed{{{(re.findall('[0-9.]*[0-9]', task.question) or '-')[position]}}}"

    assert await bench("math_word").mean_reward(echo) < 0.1


def test_the_prompt_asks_for_a_box(bench) -> None:
    environment = bench("math_word")
    system, user = rendered(environment.tasks()[0], environment.manifest)
    assert r"\boxed{}" in system["content"]
    assert user["content"] == TESTS[0]["question"]


def test_every_row_can_be_graded_by_the_judge_of_the_benchmark() -> None:
    entry = Registry().environment("math_word")
    manifest = merge_environment(entry, EnvironmentSelection(name="math_word", benchmark="math-word-judged"))
    cls = Registry().verifier_class(manifest.verifier.name, entry)
    judge = cls(verifier_parameters(cls, manifest))
    for row in TESTS:
        assert judge.task_fields.model_validate(row).expected_answer == row["expected_answer"]
