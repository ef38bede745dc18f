"""Work done together, and quantities in proportion."""

from fractions import Fraction

from ..problem import Draw, Drawn, Topic

work = Topic("work")


@work(
    "medium",
    "{first} can paint a fence alone in {x} hours, {second} alone in {y} hours. How many hours do they need together?",
)
def two_painters(draw: Draw) -> Drawn:
    x, y = draw.pick(((3, 6), (4, 12), (6, 12), (10, 15), (20, 30), (5, 20), (12, 24), (8, 24)))
    first, second = draw.names()
    return {"first": first, "second": second, "x": x, "y": y}, Fraction(x * y, x + y)


@work(
    "hard",
    "An inlet fills an empty tank in {fill} hours. Through a crack the full tank would run dry in {drain} hours. The tank is "
    "empty, the crack is open and the inlet is turned on. After how many hours is the tank full?",
)
def cracked_tank(draw: Draw) -> Drawn:
    fill, drain = draw.pick(((4, 6), (3, 6), (6, 10), (5, 6), (8, 12), (6, 9), (10, 15), (4, 12)))
    return {"fill": fill, "drain": drain}, Fraction(fill * drain, drain - fill)


@work(
    "easy",
    "{few} bakers need {hours} hours for a wedding order. How many hours would {many} bakers need at the same pace?",
)
def bakers(draw: Draw) -> Drawn:
    few, factor, result = draw(2, 4), draw(2, 3), draw(2, 5)
    return {"few": few, "hours": factor * result, "many": few * factor}, result


@work(
    "hard",
    "One pump alone empties a pool in {x} hours, a second one alone in {y} hours. The first runs alone for {start} hours, then "
    "the second is switched on as well. How many more hours does it take until the pool is empty? Give the exact value.",
)
def pump_joins(draw: Draw) -> Drawn:
    x, y = draw.two(5, 14)
    start = draw(1, x - 2)
    return {"x": x, "y": y, "start": start}, Fraction((x - start) * y, x + y)


@work(
    "easy", "A machine fills {bottles} bottles in {minutes} minutes. How many bottles does it fill in {later} minutes?"
)
def bottling(draw: Draw) -> Drawn:
    batch, step, first, later = draw(3, 9) * 2 + 1, 4, draw(2, 5), draw(6, 12)
    return {"bottles": batch * first, "minutes": step * first, "later": step * later}, batch * later


@work(
    "medium",
    "The provisions of an expedition last {people} people for {days} days. After {spent} days another {more} join them. For how many "
    "more days do the provisions last if everyone eats the same amount a day?",
)
def provisions(draw: Draw) -> Drawn:
    group, before, joining, times, spent = draw(1, 3), draw(3, 5), draw(1, 2), draw(1, 2), draw(2, 6)
    days = spent + (before + joining) * times
    return {"people": group * before, "days": days, "spent": spent, "more": group * joining}, before * times
