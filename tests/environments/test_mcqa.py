"""The questions are data; what can be computed about them is computed here again."""

import random
import re
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest
from rapidfuzz import fuzz

from gymflow.datasets import rendered

LETTERS = "ABCDEFGHIJKL"
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
PRIZE_LABELS = {
    "red": lambda prize: prize == "red",
    "blue": lambda prize: prize != "blue",
    "green": lambda prize: prize != "red",
}


def options(task) -> dict[str, str]:
    return {letter: text for option in task.options for letter, text in option.items()}


def right_text(task) -> str:
    return options(task)[task.expected_answer]


def only(candidates) -> object:
    """The one element; more or none is a question without one answer."""
    (found,) = candidates
    return found


def race() -> str:
    orders = permutations(("Priya", "Tom", "Lena", "Omar"))
    return ", ".join(only(o for o in orders if o.index("Tom") == o.index("Priya") + 1 and o.index("Lena") == 2))


def prize() -> str:
    said = {place: [box for box, true in PRIZE_LABELS.items() if true(place)] for place in PRIZE_LABELS}
    place = only(place for place, true in said.items() if len(true) == 1)
    return f"{place} box; sentence on the {said[place][0]} box"


def not_prime(texts: list[str]) -> str:
    return only(text for text in texts if any(int(text) % n == 0 for n in range(2, int(text))))


def metres(text: str) -> float:
    number, _, unit = text.partition(" ")
    per = {
        "km": 1000,
        "m": 1,
        "cm": 0.01,
        "mm": 0.001,
        "yards": 0.9144,
        "feet": 0.3048,
        "mile": 1609.344,
        "miles": 1609.344,
    }
    return float(number.replace(",", "")) * (per | {"nautical mile": 1852})[unit]


def bits(text: str) -> float:
    number, _, unit = text.replace(",", "").partition(" ")
    per = {"terabyte": 8e12, "terabytes": 8e12, "gigabytes": 8e9, "megabytes": 8e6, "kilobytes": 8e3}
    return float(number) * (per | {"trillion bits": 1e12, "billion bytes": 8e9})[unit]


COMPUTED = {
    "race-order": lambda texts: race(),
    "prize-box": lambda texts: prize(),
    "not-prime": not_prime,
    "not-multiple": lambda texts: only(text for text in texts if int(text) % 3),
    "not-palindrome": lambda texts: only(text for text in texts if text != text[::-1]),
    "largest-fraction": lambda texts: max(texts, key=Fraction),
    "longest-distance": lambda texts: max(texts, key=metres),
    "most-data": lambda texts: max(texts, key=bits),
    "next-in-row": lambda texts: str(8 + 13),
    "three-later": lambda texts: MONTHS[MONTHS.index("March") + 3],
    "hundred-months": lambda texts: MONTHS[(MONTHS.index("May") + 100) % 12],
    "fifty-hours": lambda texts: f"{(3 + 50) % 12} o'clock",
    "next-letter-code": lambda texts: "".join(chr(ord(letter) + 1) for letter in "DOG"),
    "football-and-chess": lambda texts: str(only(n for n in range(16) if 18 + 15 - n + 5 == 30)),
    "map-scale": lambda texts: f"{3 * 50_000 / 100 / 1000:g} km",
    "tokyo-time": lambda texts: f"{12 + 9}:00",
    "cube-tripled": lambda texts: str(3**3),
    "carriers": lambda texts: str(Fraction([*product("Aa", repeat=2)].count(("a", "a")), 4)),
    "half-life": lambda texts: str(Fraction(1, 2) ** (12 // 3)),
    "binary-45": lambda texts: str(int("101101", 2)),
    "binary-search": lambda texts: str(only(n for n in range(20) if 2 ** (n - 1) <= 1000 < 2**n)),
    "kettle-and-mug": lambda texts: f"${only(mug for mug in range(45) if mug + mug + 40 == 44)}",
}


@pytest.fixture
def mcqa(bench):
    return bench("mcqa")


@pytest.fixture
def by_id(mcqa):
    return {task.task_id: task for split in ("test", "train") for task in mcqa.tasks(split)}


def test_there_are_eighty_questions_of_eight_kinds_in_three_difficulties(mcqa) -> None:
    tasks = mcqa.tasks()
    assert len(tasks) >= 80
    assert len({tag for task in tasks for tag in task.tags if tag.startswith("template-")}) >= 8
    assert min(sum(level in task.tags for task in tasks) for level in ("easy", "medium", "hard")) >= 20


def test_no_two_questions_are_alike(by_id) -> None:
    questions = [task.question for task in by_id.values()]
    alike = [
        (one, other)
        for position, one in enumerate(questions)
        for other in questions[:position]
        if fuzz.ratio(one.casefold(), other.casefold()) > 80
    ]
    assert not alike


def test_options_are_twelve_different_texts_and_the_prompt_shows_them(by_id) -> None:
    for task in by_id.values():
        texts = options(task)
        assert "".join(texts) == LETTERS
        assert len({text.casefold() for text in texts.values()}) == len(LETTERS)
        assert task.options_text == "\n".join(f"{letter}: {text}" for letter, text in texts.items())


def test_every_letter_is_right_equally_often(mcqa) -> None:
    counts = Counter(task.expected_answer for task in mcqa.tasks())
    assert set(counts) == set(LETTERS)
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_computable_answers_are_right(by_id, name) -> None:
    task = by_id[name]
    assert right_text(task) == COMPUTED[name](list(options(task).values()))


def test_the_prompt_holds_the_question_and_not_the_answer(mcqa) -> None:
    task = mcqa.tasks()[0]
    system, user = rendered(task, mcqa.manifest)
    assert user["content"] == f"{task.question}\n\n{task.options_text}"
    assert "(X)" in system["content"]
    assert not re.search(r"\([A-L]\)", system["content"])


async def test_reference_answers_score_one(mcqa) -> None:
    for split in ("test", "train"):
        assert await mcqa.mean_reward(lambda task: f"The answer is ({task.expected_answer}).", split) == 1.0


async def test_naming_the_right_text_is_as_good_as_its_letter(mcqa) -> None:
    assert await mcqa.mean_reward(lambda task: f"({task.expected_answer}) {right_text(task)}") == 1.0


async def test_guessing_earns_less_than_a_tenth(mcqa) -> None:
    rng = random.Random(7)
    means = [await mcqa.mean_reward(lambda task: f"The answer is ({rng.choice(LETTERS)})") for _ in range(20)]
    assert sum(means) / len(means) < 0.1
    for letter in LETTERS:
        assert await mcqa.mean_reward(lambda task, letter=letter: f"The answer is ({letter})") < 0.1


async def test_the_length_of_an_option_tells_nothing(mcqa) -> None:
    def by_length(choose):
        return lambda task: f"The answer is ({choose(options(task).items(), key=lambda item: len(item[1]))[0]})"

    assert await mcqa.mean_reward(by_length(max)) < 0.15
    assert await mcqa.mean_reward(by_length(min)) < 0.15


async def test_silence_and_prose_earn_nothing(mcqa) -> None:
    assert await mcqa.mean_reward(lambda task: "") == 0.0
    assert await mcqa.mean_reward(lambda task: "Let me think about all of the options again.") == 0.0


def test_the_benchmark_samples_each_question_four_times(mcqa) -> None:
    benchmark = mcqa.manifest.benchmarks["mcqa-4x"]
    assert (benchmark.split, benchmark.repeats, benchmark.headline) == ("test", 4, "score")
