"""Concentrations, blends and densities."""

from fractions import Fraction
from math import gcd

from ..problem import Draw, Drawn, Topic, decimal

mixtures = Topic("mixtures")


@mixtures(
    "medium",
    "How many litres of pure water have to be added to {litres} litres of a {before}% salt solution to get a {after}% solution?",
)
def diluting(draw: Draw) -> Drawn:
    before, after = draw.pick(((20, 10), (30, 20), (40, 25), (50, 20), (60, 40), (36, 24), (25, 10)))
    litres = after // gcd(before - after, after) * draw(2, 6)
    return {"litres": litres, "before": before, "after": after}, Fraction(litres * (before - after), after)


@mixtures(
    "medium",
    "A shop blends {p} kg of coffee at ${a} a kilogram with {q} kg at ${b} a kilogram. What does one kilogram of the blend "
    "cost, in dollars?",
)
def coffee_blend(draw: Draw) -> Drawn:
    p, total = draw.pick(((1, 5), (2, 5), (3, 5), (4, 5), (3, 10), (7, 10), (1, 4), (3, 4)))
    b, a = draw.two(8, 24)
    q = total - p
    return {"p": p, "a": a, "q": q, "b": b}, decimal(Fraction(p * a + q * b, total))


@mixtures(
    "hard",
    "A laboratory needs {total} litres of {target}% acid and has {strong}% acid and {weak}% acid. How many litres of the "
    "stronger one go into the mixture?",
)
def acid(draw: Draw) -> Drawn:
    weak, gap = draw.pick((5, 10, 15)), draw.pick((20, 30, 40, 50))
    part = draw(1, gap // 10 - 1) * 10 if gap > 20 else draw.pick((5, 10, 15))
    amount = draw(2, 6)
    total = gap // gcd(part, gap) * amount
    return {"total": total, "target": weak + part, "strong": weak + gap, "weak": weak}, total * part // gap


@mixtures(
    "hard",
    "A cask holds {litres} litres of syrup. {out} litres are drawn off and replaced by water, and the contents are stirred "
    "well. Then {out} litres of the mixture are drawn off and again replaced by water. How many litres of syrup are left in the cask?",
)
def cask(draw: Draw) -> Drawn:
    parts, unit = draw(3, 6), draw(1, 4)
    return {"litres": parts * parts * unit, "out": parts * unit}, unit * (parts - 1) ** 2


@mixtures(
    "medium",
    "A metal block measures {a} cm by {b} cm by {c} cm and weighs {grams} g. What is its density in grams per cubic centimetre?",
)
def metal_block(draw: Draw) -> Drawn:
    a, b, c = draw(2, 5), draw(4, 8), draw(5, 10)
    tenths = draw(26, 113)
    c *= 10 // gcd(10, a * b * c)
    return {"a": a, "b": b, "c": c, "grams": a * b * c * tenths // 10}, decimal(Fraction(tenths, 10))
