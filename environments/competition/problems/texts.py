"""Problems about text and simulation."""

from ..problem import Draw, problem


def _brackets(draw: Draw, size: int) -> str:
    return draw.text(size, "()")


@problem(
    "texts",
    "hard",
    """
The only line holds between 1 and 3000 brackets `(` and `)`. Print the length of the longest consecutive part in which every bracket has its partner.
""",
    example="(()))()(()",
    inputs=_brackets,
)
def longest_balanced(text: str) -> str:
    best, starts = 0, [-1]
    for place, sign in enumerate(text.strip()):
        if sign == "(":
            starts.append(place)
        else:
            starts.pop()
            if starts:
                best = max(best, place - starts[-1])
            else:
                starts.append(place)
    return str(best)


def _periodic(draw: Draw, size: int) -> str:
    period = draw.text(draw(max(1, size // 4), max(1, size // 2)), "aab")
    return (period * (size // len(period) + 1))[: max(1, size)]


@problem(
    "texts",
    "hard",
    """
The only line holds a word of 1 to 3000 small letters. Print the smallest p so that every letter equals the letter p places before it, wherever there
is one.
""",
    example="abcabcab",
    inputs=_periodic,
)
def smallest_period(text: str) -> str:
    word = text.strip()
    border = [0]
    for letter in word[1:]:
        length = border[-1]
        while length and letter != word[length]:
            length = border[length - 1]
        border.append(length + (letter == word[length]))
    return str(len(word) - border[-1])


def _robot(draw: Draw, size: int) -> str:
    return draw.text(size, "FFLR")


@problem(
    "texts",
    "easy",
    """
A robot stands on the point (0, 0) and looks north. The only line holds 1 to 3000 commands: `F` moves it one point forward, `L` turns it to the left
and `R` to the right by 90 degrees. North is the direction of growing y, east of growing x. Print x and y of its last point.
""",
    example="FFRFFLF",
    inputs=_robot,
)
def robot(text: str) -> str:
    x, y, right, up = 0, 0, 0, 1
    for command in text.strip():
        if command == "F":
            x, y = x + right, y + up
        elif command == "L":
            right, up = -up, right
        else:
            right, up = up, -right
    return f"{x} {y}"


def _words(draw: Draw, size: int) -> str:
    words = [draw.text(draw(1, 3), "abc") for _ in range(size)]
    return f"{size} {draw(1, 5)}\n{' '.join(words)}"


@problem(
    "texts",
    "easy",
    """
The first line holds n and k (1 <= n <= 3000, 1 <= k <= 10), the second line n words of small letters. Print the k most frequent words with their
numbers, one per line, most frequent first and equally frequent ones in alphabetical order; all words if there are fewer than k different ones.
""",
    example="7 2\nb a c a b d a",
    inputs=_words,
)
def frequent_words(text: str) -> str:
    _, k, *words = text.split()
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return "\n".join(f"{word} {count}" for word, count in ranked[: int(k)])


def _two_words(draw: Draw, size: int) -> str:
    return f"{draw.text(size, 'abcd')}\n{draw.text(max(1, size - draw(0, 2)), 'abcd')}"


@problem(
    "texts",
    "medium",
    """
Two lines hold a word of 1 to 300 small letters each. Print the largest number of letters that can be left over in both words, in the same order, when
any letters are crossed out.
""",
    example="abcbdab\nbdcaba",
    inputs=_two_words,
    sizes=(1, 2, 3, 5, 8, 12, 60, 300),
)
def common_letters(text: str) -> str:
    first, second = text.split()
    above = [0] * (len(second) + 1)
    for left in first:
        current = [0]
        for place, right in enumerate(second, start=1):
            current.append(above[place - 1] + 1 if left == right else max(above[place], current[-1]))
        above = current
    return str(above[-1])


def _word(draw: Draw, size: int) -> str:
    return draw.text(size, "aab")


@problem(
    "texts",
    "easy",
    """
The only line holds a word of 1 to 120 small letters. Print how many different texts occur in it as a consecutive part of at least one letter.
""",
    example="abab",
    inputs=_word,
    sizes=(1, 2, 3, 4, 6, 10, 30, 120),
)
def different_parts(text: str) -> str:
    word = text.strip()
    return str(len({word[a:b] for a in range(len(word)) for b in range(a + 1, len(word) + 1)}))


def _signals(draw: Draw, size: int) -> str:
    return f"{size} {draw(1, 4)}\n{draw.text(size, 'abcde')}"


@problem(
    "texts",
    "medium",
    """
The first line holds n and k (1 <= n <= 3000, 1 <= k <= 26), the second line a word of n small letters. Print the length of its longest consecutive part
that contains at most k different letters.
""",
    example="8 2\nabacbbcb",
    inputs=_signals,
)
def few_letters(text: str) -> str:
    _, limit, word = text.split()
    last: dict[str, int] = {}
    start = best = 0
    for place, letter in enumerate(word):
        last[letter] = place
        if len(last) > int(limit):
            oldest = min(last, key=lambda one: last[one])
            start = last.pop(oldest) + 1
        best = max(best, place - start + 1)
    return str(best)
