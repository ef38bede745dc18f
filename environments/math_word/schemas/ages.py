"""Ages and averages."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic

ages = Topic("ages-and-averages")


@ages(
    "easy",
    "{first} is {age} years old. In {years} years {first} will be exactly twice as old as {second} is today. How old is {second} "
    "today?",
)
def twice_as_old(draw: Draw) -> Drawn:
    first, second = draw.names()
    years, other = draw(3, 9), draw(8, 20)
    return {"first": first, "second": second, "age": 2 * other - years, "years": years}, other


@ages(
    "medium",
    "A mother is {mother} and her son {son} years old. In how many years will she be {times} times as old as he?",
)
def mother_and_son(draw: Draw) -> Drawn:
    times = draw(3, 4)
    then = draw(10, 16) if times == 3 else draw(7, 11)
    years = draw(2, then - 3)
    return {"mother": times * then - years, "son": then - years, "times": times}, years


@ages(
    "hard",
    "Together {first} and {second} are {total} years old. {years} years ago {first} was {times} times as old as {second} was then. "
    "How old is {first} today?",
)
def together(draw: Draw) -> Drawn:
    first, second = draw.names()
    years, times, then = draw(3, 7), draw(2, 4), draw(4, 9)
    older, younger = times * then + years, then + years
    return {"first": first, "second": second, "total": older + younger, "years": years, "times": times}, older


@ages("easy", "{name} scored {a}, {b}, {c} and {d} points in four games. What is the mean score?")
def four_games(draw: Draw) -> Drawn:
    a, b, c, mean = draw(20, 40), draw(20, 40), draw(20, 40), draw(31, 36)
    return {"name": draw.names()[0], "a": a, "b": b, "c": c, "d": 4 * mean - a - b - c}, mean


@ages(
    "medium",
    "After {tests} tests the mean of {name}'s marks is {mean}. Which mark does the next test have to bring for the mean to become "
    "{goal}?",
)
def next_test(draw: Draw) -> Drawn:
    tests, mean, step = draw(3, 6), draw(60, 80), draw(1, 3)
    given = {"tests": tests, "name": draw.names()[0], "mean": mean, "goal": mean + step}
    return given, (tests + 1) * (mean + step) - tests * mean


@ages(
    "medium",
    "In a club the {juniors} juniors are {junior_age} years old on average and the {seniors} seniors {senior_age}. What is the mean age "
    "of all members? Give the exact value.",
)
def club(draw: Draw) -> Drawn:
    juniors, seniors, young, old = draw(8, 20), draw(8, 20), draw(12, 17), draw(40, 65)
    given = {"juniors": juniors, "junior_age": young, "seniors": seniors, "senior_age": old}
    return given, Fraction(juniors * young + seniors * old, juniors + seniors)


@ages(
    "hard",
    "The mean of {count} numbers is {mean}. When the largest of them is left out, the mean of the others is {rest}. What is the largest "
    "number?",
)
def largest_left_out(draw: Draw) -> Drawn:
    count, rest, step = draw(5, 9), draw(20, 50), draw(2, 5)
    return {"count": count, "mean": rest + step, "rest": rest}, count * (rest + step) - (count - 1) * rest
