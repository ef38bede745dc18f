"""Problems about numbers."""

from ..problem import Draw, problem


def _tiles(draw: Draw, size: int) -> str:
    return str(draw(size, 3 * size))


@problem(
    "numbers",
    "medium",
    """
The only line holds n (1 <= n <= 10000). Print in how many ways a floor of 2 times n squares can be covered with tiles of 1 times 2 squares, as the remainder
of a division by 1000000007.
""",
    example="4",
    inputs=_tiles,
)
def floor_tiles(text: str) -> str:
    before, ways = 1, 1
    for _ in range(int(text) - 1):
        before, ways = ways, (before + ways) % 1000000007
    return str(ways)


def _primes(draw: Draw, size: int) -> str:
    rows = [str(size)]
    for _ in range(size):
        first, second = draw(1, 10 * size + 5), draw(1, 10 * size + 5)
        rows.append(f"{min(first, second)} {max(first, second)}")
    return "\n".join(rows)


@problem(
    "numbers",
    "medium",
    """
The first line holds q (1 <= q <= 3000), each of the next q lines two numbers a and b (1 <= a <= b <= 50000). For each of them print how many prime numbers
there are from a to b, one per line.
""",
    example="3\n1 10\n14 16\n7 7",
    inputs=_primes,
)
def primes_between(text: str) -> str:
    _, *numbers = map(int, text.split())
    top = max(numbers)
    prime = [False, False] + [True] * (top - 1)
    for number in range(2, int(top**0.5) + 1):
        if prime[number]:
            prime[number * number :: number] = [False] * len(prime[number * number :: number])
    below = [0]
    for is_prime in prime:
        below.append(below[-1] + is_prime)
    return "\n".join(str(below[b + 1] - below[a]) for a, b in zip(numbers[::2], numbers[1::2], strict=True))


def _stairs(draw: Draw, size: int) -> str:
    return f"{size}\n{' '.join(map(str, draw.list(size, 1, 10**6)))}"


@problem(
    "numbers",
    "hard",
    """
The first line holds n (1 <= n <= 3000), the second line n whole numbers from 1 to 10^6. Print the largest number of them that can be left over in strictly
rising order when the others are crossed out.
""",
    example="7\n4 1 6 2 8 3 9",
    inputs=_stairs,
)
def rising_row(text: str) -> str:
    import bisect

    _, *numbers = map(int, text.split())
    ends: list[int] = []
    for number in numbers:
        place = bisect.bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return str(len(ends))


def _shares(draw: Draw, size: int) -> str:
    largest = 9 if size < 5 else 400
    return f"{draw(1, largest)} {draw(1, largest)} {draw(largest, 10**6)}"


@problem(
    "numbers",
    "easy",
    """
The only line holds a, b and c (1 <= a, b, c <= 10^6). One bell rings every a seconds and another every b seconds; both have just rung. Print how often
they ring at the same moment in the next c seconds, the last one included.
""",
    example="4 6 30",
    inputs=_shares,
)
def two_bells(text: str) -> str:
    import math

    a, b, c = map(int, text.split())
    return str(c // math.lcm(a, b))


def _digits(draw: Draw, size: int) -> str:
    return f"{draw.pick('123456789')}{draw.text(size - 1, '0123456789')} {draw(2, 997)}"


@problem(
    "numbers",
    "easy",
    """
The only line holds a whole number of up to 3000 digits and a number m (2 <= m <= 997). Print the remainder of the first number divided by m.
""",
    example="123456789123456789 97",
    inputs=_digits,
)
def long_remainder(text: str) -> str:
    digits, modulus = text.split()
    rest = 0
    for digit in digits:
        rest = (rest * 10 + int(digit)) % int(modulus)
    return str(rest)


def _change(draw: Draw, size: int) -> str:
    coins = sorted({draw(1, 50) for _ in range(min(size, 6))})
    return f"{len(coins)} {draw(1, 3 * size)}\n{' '.join(map(str, coins))}"


@problem(
    "numbers",
    "hard",
    """
The first line holds n and s (1 <= n <= 10, 1 <= s <= 10000), the second line the different values of n kinds of coins (1 to 50), rising. Print the smallest
number of coins that make up s, or -1 if it cannot be made up. There are enough coins of each kind.
""",
    example="3 12\n1 5 6",
    inputs=_change,
    sizes=(1, 2, 4, 6, 7, 9, 12, 40, 300, 3000),
)
def making_change(text: str) -> str:
    _, amount, *coins = map(int, text.split())
    fewest = [0] + [amount + 1] * amount
    for total in range(1, amount + 1):
        fewest[total] = 1 + min((fewest[total - coin] for coin in coins if coin <= total), default=amount)
    return str(fewest[amount] if fewest[amount] <= amount else -1)


def _grid(draw: Draw, size: int) -> str:
    rows = [" ".join(map(str, draw.list(size, 0, 99))) for _ in range(size)]
    return "\n".join([str(size), *rows])


@problem(
    "numbers",
    "medium",
    """
The first line holds n (1 <= n <= 60), each of the next n lines n whole numbers from 0 to 99, the apples on the squares of a field. You walk from the upper
left to the lower right square, each step going right or down, and collect all apples on your way. Print the largest number that you can collect.
""",
    example="3\n1 3 1\n1 5 1\n4 2 1",
    inputs=_grid,
    sizes=(1, 2, 3, 4, 5, 8, 20, 60),
)
def apples(text: str) -> str:
    n, *numbers = map(int, text.split())
    best = [0] * (n + 1)
    for start in range(0, n * n, n):
        for place, here in enumerate(numbers[start : start + n], start=1):
            best[place] = max(best[place], best[place - 1] if place > 1 else 0) + here
    return str(best[n])
