"""Problems about whole numbers."""

from ..problem import problem


@problem("numbers", "easy", [(0,), (9,), (10,), (987,), (199,), (123456789,), (18,)])
def digital_root(number: int) -> int:
    """Add up the digits of a number, then the digits of the sum, and so on until one digit is left.

    >>> digital_root(86)
    5
    """
    while number > 9:
        number = sum(int(digit) for digit in str(number))
    return number


@problem("numbers", "easy", [(0,), (2,), (3,), (10,), (30,), (97,), (100,)])
def primes_up_to(limit: int) -> list[int]:
    """All prime numbers from 2 to `limit`, the limit included, in rising order.

    >>> primes_up_to(11)
    [2, 3, 5, 7, 11]
    """
    return [n for n in range(2, limit + 1) if all(n % d for d in range(2, int(n**0.5) + 1))]


@problem("numbers", "medium", [(1,), (2,), (97,), (360,), (1024,), (9991,), (1000000,), (600851475143,)])
def prime_factors(number: int) -> list[list[int]]:
    """The prime factorisation of a positive number: [prime, exponent] pairs with rising primes; empty for 1.

    >>> prime_factors(84)
    [[2, 2], [3, 1], [7, 1]]
    """
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        exponent = 0
        while number % divisor == 0:
            number //= divisor
            exponent += 1
        if exponent:
            factors.append([divisor, exponent])
        divisor += 1
    if number > 1:
        factors.append([number, 1])
    return factors


@problem("numbers", "easy", [(1,), (2,), (7,), (27,), (97,), (1024,)])
def collatz_steps(start: int) -> int:
    """How many steps it takes from a positive number to 1, if each step halves an even number and replaces an odd number n by 3n + 1.

    >>> collatz_steps(6)
    8
    """
    steps = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        steps += 1
    return steps


@problem("numbers", "medium", [(255, 2), (255, 16), (0, 7), (-10, 3), (35, 36), (1000, 10), (123456, 12)])
def in_base(number: int, base: int) -> str:
    """A whole number written in a base from 2 to 36, with the digits 0-9 and then a-z, and a minus sign if it is negative.

    >>> in_base(100, 8)
    '144'
    >>> in_base(-31, 16)
    '-1f'
    """
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    rest, text = abs(number), ""
    while rest:
        rest, digit = divmod(rest, base)
        text = digits[digit] + text
    return ("-" if number < 0 else "") + (text or "0")


@problem("numbers", "hard", [(1, 3), (1, 2), (22, 7), (1, 6), (10, 5), (0, 9), (1, 97), (5, 12), (100, 11)])
def decimal_expansion(numerator: int, denominator: int) -> str:
    """A fraction of two non-negative whole numbers (the denominator is not 0) as a decimal number, with its repeating digits in
    brackets. Without repeating digits there are no brackets, and without decimals there is no point.

    >>> decimal_expansion(5, 6)
    '0.8(3)'
    >>> decimal_expansion(9, 4)
    '2.25'
    """
    whole, rest = divmod(numerator, denominator)
    digits, seen = "", {}
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, denominator)
        digits += str(digit)
    if rest:
        digits = f"{digits[: seen[rest]]}({digits[seen[rest] :]})"
    return f"{whole}.{digits}" if digits else str(whole)


@problem("numbers", "hard", [(3, 4), (2, 3), (5, 21), (1, 7), (7, 15), (4, 13), (6, 7)])
def egyptian_fraction(numerator: int, denominator: int) -> list[int]:
    """Write a fraction between 0 and 1 as a sum of fractions 1/a + 1/b + ... by always taking the largest 1/n that is not larger than what
    is left. Return the denominators in order.

    >>> egyptian_fraction(5, 6)
    [2, 3]
    >>> egyptian_fraction(3, 7)
    [3, 11, 231]
    """
    denominators = []
    while numerator:
        n = -(-denominator // numerator)
        denominators.append(n)
        numerator, denominator = numerator * n - denominator, denominator * n
    return denominators


@problem("numbers", "hard", [(0, 10), (1, 10), (10, 1000), (100, 1000), (1000000, 97), (10**14, 1000000007), (60, 2)])
def fibonacci_modulo(index: int, modulus: int) -> int:
    """The remainder of a Fibonacci number F(index) divided by `modulus`, with F(0) = 0 and F(1) = 1. The index can be as large as 10**18,
    so computing one number after the other takes too long.

    >>> fibonacci_modulo(12, 100)
    44
    """

    def pair(n: int) -> tuple[int, int]:
        if n == 0:
            return 0, 1 % modulus
        low, high = pair(n // 2)
        even = low * (2 * high - low) % modulus
        odd = (low * low + high * high) % modulus
        return (odd, (even + odd) % modulus) if n % 2 else (even, odd)

    return pair(index)[0]


@problem(
    "numbers",
    "medium",
    [
        ("4539578763621486",),
        ("8273123273520569",),
        ("0",),
        ("059",),
        ("79927398713",),
        ("79927398710",),
        ("4111111111111111",),
    ],
)
def luhn_valid(digits: str) -> bool:
    """Whether a row of digits passes the Luhn check: from the right, every second digit is doubled (9 is taken off a result above 9), and
    the sum of all digits has to be divisible by 10.

    >>> luhn_valid("18")
    True
    >>> luhn_valid("19")
    False
    """
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


@problem("numbers", "medium", [("III",), ("IV",), ("MCMXCIV",), ("XLIX",), ("MMXXV",), ("CDXLIV",), ("DCCC",)])
def from_roman(numeral: str) -> int:
    """The value of a Roman numeral, where a smaller sign before a larger one is taken off.

    >>> from_roman("XIV")
    14
    """
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}[sign] for sign in numeral]
    return sum(
        -value if any(later > value for later in values[place + 1 : place + 2]) else value
        for place, value in enumerate(values)
    )


@problem("numbers", "easy", [(10, [3, 5]), (20, [3, 5]), (1, [2]), (100, [7]), (50, [4, 6, 10]), (16, [2, 4, 8])])
def sum_of_multiples(limit: int, factors: list[int]) -> int:
    """The sum of all positive numbers below `limit` that are a multiple of at least one of the factors.

    >>> sum_of_multiples(13, [4, 6])
    30
    """
    return sum(n for n in range(1, limit) if any(n % factor == 0 for factor in factors))


@problem("numbers", "medium", [(415, 93), (1, 1), (7, 3), (3, 7), (649, 200), (10, 5), (355, 113)])
def continued_fraction(numerator: int, denominator: int) -> list[int]:
    """The terms of the continued fraction of a positive fraction: take the whole part, turn what is left upside down, and go on until
    nothing is left.

    >>> continued_fraction(43, 19)
    [2, 3, 1, 4]
    """
    terms = []
    while denominator:
        terms.append(numerator // denominator)
        numerator, denominator = denominator, numerator % denominator
    return terms
