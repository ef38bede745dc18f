"""More problems about best choices."""

from ..problem import Draw, problem
from .sequences import row


def _cards(draw: Draw, size: int) -> str:
    return row(draw.list(size, 1, 1000))


@problem(
    "choices",
    "hard",
    """
n cards with points lie in a row. Two players take turns, and each takes the leftmost or the rightmost card. Both play as well as possible. The first line
holds n (1 <= n <= 300), the second line the points of the cards (1 to 1000). Print how many points more the first player gets than the second; the number is
negative if the second gets more.
""",
    example="4\n3 9 1 2",
    inputs=_cards,
    sizes=(1, 2, 3, 4, 5, 7, 40, 300),
)
def cards_from_the_ends(text: str) -> str:
    n, *points = map(int, text.split())
    lead = list(points)
    for length in range(1, n):
        lead = [max(points[a] - lead[a + 1], points[a + length] - lead[a]) for a in range(n - length)]
    return str(lead[0])


@problem(
    "choices",
    "easy",
    """
Each of n stairs costs a toll when you step on it. You start in front of the first one, go up one or two stairs at a time, and have to step on the last one.
The first line holds n (1 <= n <= 3000), the second line the tolls (1 to 1000). Print the smallest total toll.
""",
    example="5\n4 1 7 2 3",
    inputs=_cards,
)
def stair_tolls(text: str) -> str:
    _, *tolls = map(int, text.split())
    before, here = 0, 0
    for number, toll in enumerate(tolls):
        before, here = here, toll + (here if number == 0 else min(before, here))
    return str(here)


def _party(draw: Draw, size: int) -> str:
    limit = draw(100, 130)
    return f"{size} {limit}\n{' '.join(map(str, draw.list(size, 30, 100)))}"


@problem(
    "choices",
    "medium",
    """
A boat carries at most two people whose weights add up to at most w. The first line holds n and w (1 <= n <= 3000, 1 <= w <= 10^6), the second line the
weights of n people, each at most w. Print the smallest number of trips that brings all of them across.
""",
    example="5 100\n90 40 60 55 45",
    inputs=_party,
)
def boat_trips(text: str) -> str:
    _, limit, *weights = map(int, text.split())
    weights.sort()
    light, heavy, trips = 0, len(weights) - 1, 0
    while light <= heavy:
        if weights[light] + weights[heavy] <= limit:
            light += 1
        heavy -= 1
        trips += 1
    return str(trips)


def _circuit(draw: Draw, size: int) -> str:
    fuel = draw.list(size, 0, 20)
    spare = sum(fuel) + draw(-2, 1)
    way = [0] * size
    for _ in range(max(0, spare)):
        way[draw(0, size - 1)] += 1
    return f"{size}\n{' '.join(map(str, fuel))}\n{' '.join(map(str, way))}"


@problem(
    "choices",
    "medium",
    """
n petrol stations, numbered from 1 to n, lie on a circular road. The first line holds n (1 <= n <= 3000), the second line the litres of petrol at each station,
the third line the litres that it takes to get from each station to the next one (from station n to station 1), all numbers from 0 to 10^6. A car with an empty
tank takes all petrol of every station on its way. Print the smallest number of a station from which it can drive all round, or -1.
""",
    example="4\n1 5 2 4\n3 2 4 2",
    inputs=_circuit,
    sizes=(1, 2, 3, 4, 5, 7, 12, 40, 300, 3000),
)
def petrol_stations(text: str) -> str:
    n, *numbers = map(int, text.split())
    gains = [fuel - way for fuel, way in zip(numbers[:n], numbers[n:], strict=True)]
    if sum(gains) < 0:
        return "-1"
    start = tank = 0
    for place, gain in enumerate(gains):
        tank += gain
        if tank < 0:
            start, tank = place + 1, 0
    return str(start + 1)


def _prices(draw: Draw, size: int) -> str:
    prices = [draw(1, 9)]
    while len(prices) < size:
        prices.append(prices[-1] + draw(0, 9))
    return row(prices)


@problem(
    "choices",
    "medium",
    """
The first line holds n (1 <= n <= 300), the second line n prices (1 to 10^6): what a piece of rope of 1, 2, ..., n metres is sold for. Print the largest amount
that a rope of n metres brings when it is cut into pieces of whole metres, or not cut at all.
""",
    example="5\n2 5 7 8 10",
    inputs=_prices,
    sizes=(1, 2, 3, 4, 6, 9, 12, 60, 300),
)
def rope_pieces(text: str) -> str:
    n, *prices = map(int, text.split())
    best = [0]
    for length in range(1, n + 1):
        best.append(max(prices[piece - 1] + best[length - piece] for piece in range(1, length + 1)))
    return str(best[n])


def _floors(draw: Draw, size: int) -> str:
    return f"{draw(1, 4)} {size}"


@problem(
    "choices",
    "hard",
    """
A glass breaks when it falls from some floor of a house of f floors or from a higher one, but from which floor on is unknown; perhaps from none. You have g
equal glasses; a broken one is gone, an unbroken one can be dropped again. The only line holds g and f (1 <= g <= 10, 1 <= f <= 3000). Print the smallest number of
drops with which the floor can be found in every case.
""",
    example="2 10",
    inputs=_floors,
    sizes=(1, 2, 3, 5, 8, 12, 40, 300, 3000),
)
def dropping_glasses(text: str) -> str:
    glasses, floors = map(int, text.split())
    reach = [0] * (glasses + 1)
    drops = 0
    while reach[glasses] < floors:
        drops += 1
        reach = [0] + [reach[number - 1] + 1 + reach[number] for number in range(1, glasses + 1)]
    return str(drops)


@problem(
    "choices",
    "easy",
    """
n trees stand in a row. The first line holds n (1 <= n <= 3000), the second line how many kilograms of fruit each of them carries (1 to 1000). You may pick as many trees as
you like, but never two that stand side by side. Print the largest possible harvest.
""",
    example="6\n5 1 2 9 8 4",
    inputs=_cards,
)
def no_neighbours(text: str) -> str:
    _, *fruit = map(int, text.split())
    without, with_last = 0, 0
    for kilograms in fruit:
        without, with_last = max(without, with_last), without + kilograms
    return str(max(without, with_last))
