"""Sequences and series."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic

sequences = Topic("sequences")


@sequences(
    "easy",
    "The first row of a theatre has {first} seats, and each row has {step} seats more than the one in front of it. How many seats are there in "
    "row {row}?",
)
def theatre_row(draw: Draw) -> Drawn:
    first, step, row = draw(12, 25), draw(2, 4), draw(8, 20)
    return {"first": first, "step": step, "row": row}, first + (row - 1) * step


@sequences(
    "medium",
    "Logs are stacked in layers: {bottom} in the lowest, one fewer in each layer above it, and {top} in the highest. How many logs are in the "
    "stack?",
)
def log_stack(draw: Draw) -> Drawn:
    top, bottom = draw(3, 8), draw(15, 30)
    return {"bottom": bottom, "top": top}, (bottom + top) * (bottom - top + 1) // 2


@sequences(
    "hard",
    "A ball is dropped from a height of {height} m. After each bounce it rises to {up}/{down} of the height before. How many metres does it travel "
    "up and down in all until it comes to rest?",
)
def bouncing_ball(draw: Draw) -> Drawn:
    up, down = draw.pick(((1, 2), (2, 3), (3, 4), (3, 5), (1, 3)))
    height = draw(2, 9) * (down - up)
    ratio = Fraction(up, down)
    return {"height": height, "up": up, "down": down}, height + 2 * height * ratio / (1 - ratio)


@sequences(
    "easy",
    "Duckweed doubles the area that it covers every day. After {full} days it covers a whole pond. After how many days did it cover {part} of the "
    "pond?",
)
def duckweed(draw: Draw) -> Drawn:
    full, halvings = draw(12, 40), draw(1, 4)
    return {"full": full, "part": ("half", "a quarter", "an eighth", "a sixteenth")[halvings - 1]}, full - halvings


@sequences(
    "hard",
    "A sequence begins with {first}, and every further term is {times} times the term before it, minus {less}. What is the sixth term?",
)
def sixth_term(draw: Draw) -> Drawn:
    first, times, less = draw(3, 7), draw(2, 3), draw(1, 4)
    power = times**5
    return {"first": first, "times": times, "less": less}, first * power - less * (power - 1) // (times - 1)


@sequences(
    "medium",
    "{name} reads {first} pages on the first day of the holidays and on each later day {more} pages more than on the day before. How many pages "
    "have been read after {days} days?",
)
def holiday_reading(draw: Draw) -> Drawn:
    first, more, days = draw(8, 20), draw(2, 5), draw(7, 14)
    given = {"name": draw.names()[0], "first": first, "more": more, "days": days}
    return given, days * first + more * days * (days - 1) // 2
