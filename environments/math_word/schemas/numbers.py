"""Divisibility, digits and remainders."""

from math import gcd, lcm

from ..problem import Draw, Drawn, Topic

numbers = Topic("numbers")


@numbers("easy", "The sum of three consecutive whole numbers is {total}. What is the largest of the three?")
def three_consecutive(draw: Draw) -> Drawn:
    middle = draw(15, 120)
    return {"total": 3 * middle}, middle + 1


@numbers(
    "medium",
    "A hall floor of {a} cm by {b} cm is to be covered with square tiles, all of one size, without cutting any. How many centimetres are the "
    "sides of the largest tiles that fit?",
)
def largest_tiles(draw: Draw) -> Drawn:
    side, (p, q) = draw(12, 45), draw.pick(((9, 14), (8, 15), (10, 13), (12, 17), (15, 22), (11, 18)))
    return {"a": side * q, "b": side * p}, gcd(side * p, side * q)


@numbers(
    "medium",
    "Three bus lines leave a station together at noon and then every {a}, {b} and {c} minutes. After how many minutes do all three leave "
    "together again for the first time?",
)
def three_buses(draw: Draw) -> Drawn:
    a, b, c = draw.pick(((6, 8, 10), (8, 12, 15), (9, 12, 15), (10, 12, 18), (6, 10, 14), (12, 16, 20), (10, 15, 25)))
    return {"a": a, "b": b, "c": c}, lcm(a, b, c)


@numbers(
    "hard",
    "A farmer has fewer than {limit} eggs. Packed in boxes of {p}, {left_p} are left over; packed in boxes of {q}, {left_q} are left over. How "
    "many eggs are there?",
)
def egg_boxes(draw: Draw) -> Drawn:
    p, q = draw.pick(((6, 7), (7, 9), (8, 11), (9, 10), (7, 12), (10, 13), (11, 12)))
    eggs = draw(p * q // 2, p * q - 2)
    while eggs % p < 2 or eggs % q < 2:
        eggs -= 1
    return {"limit": p * q, "p": p, "left_p": eggs % p, "q": q, "left_q": eggs % q}, eggs


@numbers("medium", "What is the last digit of {base} to the power of {exponent}?")
def last_digit(draw: Draw) -> Drawn:
    base, exponent = draw.pick((2, 3, 7, 8, 12, 13, 17, 18)), draw(30, 120)
    return {"base": base, "exponent": exponent}, pow(base, exponent, 10)


@numbers(
    "medium",
    "The digits of a two-digit number add up to {total}. Written the other way round, the number is larger by {more}. What is the number?",
)
def swapped_digits(draw: Draw) -> Drawn:
    tens, ones = draw.two(1, 9)
    return {"total": tens + ones, "more": 9 * (ones - tens)}, 10 * tens + ones


@numbers("medium", "How many positive whole numbers divide {number} without remainder?")
def divisors(draw: Draw) -> Drawn:
    a, b, c = draw(2, 4), draw(1, 3), draw(1, 2)
    return {"number": 2**a * 3**b * 5**c}, (a + 1) * (b + 1) * (c + 1)


@numbers("hard", "The product of all whole numbers from 1 to {top} is written out. With how many zeros does it end?")
def ending_zeros(draw: Draw) -> Drawn:
    top = draw(30, 160)
    return {"top": top}, top // 5 + top // 25 + top // 125


@numbers("hard", "What is the remainder when {base} to the power of {exponent} is divided by {modulus}?")
def power_remainder(draw: Draw) -> Drawn:
    base, exponent, modulus = draw(3, 9), draw(40, 99), draw.pick((11, 13, 17, 19, 23))
    return {"base": base, "exponent": exponent, "modulus": modulus}, pow(base, exponent, modulus)
