"""More problems about numbers."""

from ..problem import Draw, problem


def _digit_sum(draw: Draw, size: int) -> str:
    largest = 10 ** min(18, 1 + size // 2)
    return f"{draw(1, largest)} {draw(1, 2 + 4 * min(18, 1 + size // 2))}"


@problem(
    "numbers",
    "hard",
    """
The only line holds n and s (1 <= n <= 10^18, 1 <= s <= 162). Print how many of the whole numbers from 1 to n have digits that add up to s.
""",
    example="100 5",
    inputs=_digit_sum,
    sizes=(1, 2, 3, 4, 5, 6, 7, 20, 34, 36),
)
def digit_sums(text: str) -> str:
    top, total = text.split()
    ways = [[0] * 163 for _ in range(19)]
    ways[0][0] = 1
    for length in range(1, 19):
        for sum_ in range(163):
            ways[length][sum_] = sum(ways[length - 1][sum_ - digit] for digit in range(min(9, sum_) + 1))
    left, count = int(total), 0
    for place, sign in enumerate(top):
        rest = len(top) - place - 1
        count += sum(ways[rest][left - digit] for digit in range(int(sign)) if left >= digit)
        left -= int(sign)
        if left < 0:
            return str(count)
    return str(count + (left == 0))


def _number(draw: Draw, size: int) -> str:
    return str(draw(size, 3 * size))


@problem(
    "numbers",
    "medium",
    """
The only line holds n (1 <= n <= 10000). Print the smallest number of square numbers (1, 4, 9, ...) whose sum is n.
""",
    example="12",
    inputs=_number,
    sizes=(1, 2, 3, 5, 8, 12, 40, 300, 3000),
)
def fewest_squares(text: str) -> str:
    fewest = [0]
    for number in range(1, int(text) + 1):
        fewest.append(1 + min(fewest[number - root * root] for root in range(1, int(number**0.5) + 1)))
    return str(fewest[-1])


def _perimeter(draw: Draw, size: int) -> str:
    return str(12 * draw(max(1, size // 12), max(2, size // 6)))


@problem(
    "numbers",
    "medium",
    """
The only line holds p (3 <= p <= 3000). Print how many different right-angled triangles there are whose three sides are whole numbers with the sum p.
""",
    example="84",
    inputs=_perimeter,
    sizes=(12, 24, 40, 60, 90, 120, 300, 800, 1400),
)
def right_triangles(text: str) -> str:
    p = int(text)
    count = 0
    for a in range(1, p // 3 + 1):
        # From a² + b² = (p - a - b)² follows b = p (p - 2a) / (2 (p - a)).
        b, rest = divmod(p * (p - 2 * a), 2 * (p - a))
        count += rest == 0 and a < b
    return str(count)


def _binary(draw: Draw, size: int) -> str:
    return str(draw(1, 2 ** min(size, 50)))


@problem(
    "numbers",
    "easy",
    """
The only line holds n (1 <= n <= 10^18). Print the length of the longest row of zeros that stands between two ones in the binary form of n, 0 if there is none.
""",
    example="1041",
    inputs=_binary,
    sizes=(1, 4, 5, 6, 7, 8, 12, 20, 40, 50),
)
def binary_gap(text: str) -> str:
    number, best, gap = int(text), 0, -1
    while number:
        if number % 2:
            best, gap = max(best, gap), 0
        elif gap >= 0:
            gap += 1
        number //= 2
    return str(best)


def _power(draw: Draw, size: int) -> str:
    return f"{draw(1, 9 * size)} {draw(0, 10 ** min(18, size))} {draw(2, 10**9)}"


@problem(
    "numbers",
    "medium",
    """
The only line holds a, b and m (1 <= a <= 10^6, 0 <= b <= 10^18, 2 <= m <= 10^9). Print the remainder of a to the power of b divided by m.
""",
    example="3 13 100",
    inputs=_power,
    sizes=(1, 1, 2, 2, 3, 7, 12, 17, 18),
)
def large_power(text: str) -> str:
    a, b, m = map(int, text.split())
    result = 1 % m
    while b:
        if b % 2:
            result = result * a % m
        a, b = a * a % m, b // 2
    return str(result)


def _nesting(draw: Draw, size: int) -> str:
    return f"{size} {draw(1, max(1, size))}"


@problem(
    "numbers",
    "hard",
    """
The only line holds n and d (1 <= d <= n <= 300). Print how many rows of n opening and n closing brackets there are in which every bracket has its partner and never more than d
brackets are open at the same time, as the remainder of a division by 1000000007.
""",
    example="3 2",
    inputs=_nesting,
    sizes=(1, 2, 3, 4, 5, 6, 7, 40, 300),
)
def shallow_brackets(text: str) -> str:
    n, depth = map(int, text.split())
    ways = [1] + [0] * depth
    for _ in range(2 * n):
        ways = [
            ((ways[level - 1] if level else 0) + (ways[level + 1] if level < depth else 0)) % 1000000007
            for level in range(depth + 1)
        ]
    return str(ways[0])
