"""Counting possibilities."""

from math import comb, factorial, prod

from ..problem import Draw, Drawn, Topic

counting = Topic("counting")


@counting(
    "easy",
    "{name} packs {shirts} shirts, {trousers} pairs of trousers and {hats} hats. In how many ways can one of each be worn together?",
)
def outfits(draw: Draw) -> Drawn:
    shirts, trousers, hats = draw(3, 8), draw(2, 6), draw(2, 5)
    given = {"name": draw.names()[0], "shirts": shirts, "trousers": trousers, "hats": hats}
    return given, shirts * trousers * hats


@counting(
    "medium", "{people} people meet, and each shakes hands with each of the others once. How many handshakes are there?"
)
def handshakes(draw: Draw) -> Drawn:
    people = draw(7, 30)
    return {"people": people}, comb(people, 2)


@counting(
    "medium",
    "A quiz team of {from_red} players from the red club and {from_blue} from the blue club is to be formed. The red club has {red} "
    "players, the blue club {blue}. How many different teams are possible?",
)
def quiz_team(draw: Draw) -> Drawn:
    red, blue, from_red, from_blue = draw(4, 7), draw(4, 7), draw(2, 3), draw(2, 3)
    given = {"red": red, "blue": blue, "from_red": from_red, "from_blue": from_blue}
    return given, comb(red, from_red) * comb(blue, from_blue)


@counting("medium", "In how many different orders can the letters of the word {word} be written?")
def letters(draw: Draw) -> Drawn:
    word = draw.pick(("LEVEL", "BANANA", "COFFEE", "PEPPER", "COCOA", "LETTER", "TEETH", "BALLOON", "SEVEN", "MAMMAL"))
    return {"word": word}, factorial(len(word)) // prod(factorial(word.count(letter)) for letter in set(word))


@counting(
    "hard",
    "A robot moves on a grid by steps of one unit, only to the right or up, from a corner to the point {right} units to the right and {up} units "
    "up. The crossing {block_right} units to the right and {block_up} up of its start is blocked. How many routes are left?",
)
def grid_routes(draw: Draw) -> Drawn:
    block_right, block_up = draw(1, 3), draw(1, 3)
    right, up = block_right + draw(1, 3), block_up + draw(1, 3)
    through = comb(block_right + block_up, block_up) * comb(right + up - block_right - block_up, up - block_up)
    given = {"right": right, "up": up, "block_right": block_right, "block_up": block_up}
    return given, comb(right + up, up) - through


@counting(
    "hard", "How many whole numbers with {digits} digits have digits that become larger from each one to the next?"
)
def rising_digits(draw: Draw) -> Drawn:
    digits = draw(3, 5)
    return {"digits": digits}, comb(9, digits)


@counting("hard", "How many of the whole numbers from 1 to {top} are divisible neither by {p} nor by {q}?")
def neither_divides(draw: Draw) -> Drawn:
    p, q = draw.pick(((2, 3), (2, 5), (2, 7), (3, 5), (3, 7), (5, 7), (3, 4), (4, 5)))
    top = draw(150, 600)
    return {"top": top, "p": p, "q": q}, top - top // p - top // q + top // (p * q)


@counting(
    "easy",
    "{players} players enter a knock-out tournament: whoever loses a match is out. How many matches are played until the winner is found?",
)
def knock_out(draw: Draw) -> Drawn:
    players = draw(19, 90)
    return {"players": players}, players - 1


@counting(
    "hard",
    "{guests} guests sit down at a round table; {first} and {second} insist on sitting side by side. In how many ways can the guests be "
    "seated, if seatings that differ by a rotation count as one?",
)
def round_table(draw: Draw) -> Drawn:
    first, second = draw.names()
    guests = draw(5, 8)
    return {"guests": guests, "first": first, "second": second}, 2 * factorial(guests - 2)


@counting(
    "hard",
    "{name} climbs a flight of {stairs} stairs and takes one or two stairs with each step. In how many different ways can the flight be "
    "climbed?",
)
def stairs(draw: Draw) -> Drawn:
    count = draw(7, 14)
    ways, following = 1, 1
    for _ in range(count):
        ways, following = following, ways + following
    return {"name": draw.names()[0], "stairs": count}, ways
