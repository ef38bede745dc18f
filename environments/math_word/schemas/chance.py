"""Probability and expected values."""

from fractions import Fraction
from math import comb

from ..problem import Draw, Drawn, Topic, decimal

chance = Topic("chance")


@chance(
    "easy",
    "A bag holds {red} red, {green} green and {blue} blue marbles. One is drawn blindly. What is the probability that it is not green? Give a "
    "fraction.",
)
def not_green(draw: Draw) -> Drawn:
    red, green, blue = draw(3, 9), draw(2, 8), draw(3, 9)
    return {"red": red, "green": green, "blue": blue}, Fraction(red + blue, red + green + blue)


@chance(
    "medium",
    "Two fair six-sided dice are thrown. What is the probability that the sum of their points is {total}? Give a fraction.",
)
def dice_total(draw: Draw) -> Drawn:
    total = draw(3, 11)
    return {"total": total}, Fraction(6 - abs(7 - total), 36)


@chance(
    "hard",
    "A drawer contains {black} black and {white} white socks. {name} takes out two of them in the dark. What is the probability that they have "
    "the same colour? Give a fraction.",
)
def two_socks(draw: Draw) -> Drawn:
    black, white = draw(4, 10), draw(3, 9)
    same = comb(black, 2) + comb(white, 2)
    return {"black": black, "white": white, "name": draw.names()[0]}, Fraction(same, comb(black + white, 2))


@chance(
    "hard", "A fair coin is tossed {tosses} times. What is the probability of at least {heads} heads? Give a fraction."
)
def at_least_heads(draw: Draw) -> Drawn:
    tosses = draw(5, 8)
    heads = draw(tosses // 2 + 1, tosses - 1)
    return {"tosses": tosses, "heads": heads}, Fraction(
        sum(comb(tosses, k) for k in range(heads, tosses + 1)), 2**tosses
    )


@chance(
    "medium",
    "A raffle has {tickets} tickets. One of them wins ${first} and {others} others win ${second} each; the rest win nothing. What is the "
    "expected prize of one ticket, in dollars?",
)
def raffle(draw: Draw) -> Drawn:
    tickets, first, others, second = draw.pick((200, 400, 500)), draw(5, 20) * 20, draw(3, 9), draw(2, 8) * 5
    given = {"tickets": tickets, "first": first, "others": others, "second": second}
    return given, decimal(Fraction(first + others * second, tickets))


@chance(
    "medium",
    "Of two independent alarms one reports a break-in with a probability of {a}%, the other with {b}%. With what probability, in percent, does at "
    "least one of them report it?",
)
def two_alarms(draw: Draw) -> Drawn:
    a, b = draw(12, 19) * 5, draw(10, 18) * 5
    return {"a": a, "b": b}, decimal(Fraction(10000 - (100 - a) * (100 - b), 100))
