"""More problems about text."""

from ..problem import Draw, problem


def _packed(draw: Draw, size: int) -> str:
    parts = [f"{draw.pick('abcxyz')}{draw(1, 9) if size > 40 else draw(1, 14)}" for _ in range(min(size, 300))]
    return "".join(parts)


@problem(
    "texts",
    "easy",
    """
A word has been packed: behind each letter stands how many times it has to be written in a row, so that `a3b1` stands for `aaab`. The only line holds a packed word of
1 to 300 letters, each with a number from 1 to 99. Print the word itself.
""",
    example="h1e1l2o11",
    inputs=_packed,
)
def unpack(text: str) -> str:
    word, letter, digits = "", "", ""
    for sign in [*text.strip(), "."]:
        if sign.isdigit():
            digits += sign
        else:
            word += letter * int(digits or 0)
            letter, digits = sign, ""
    return word


def _vocabulary(draw: Draw, size: int) -> str:
    return f"{size}\n{' '.join(draw.text(draw(1, 4), 'abc') for _ in range(size))}"


@problem(
    "texts",
    "easy",
    """
Two words belong together if one becomes the other when its letters are put in another order. The first line holds n (1 <= n <= 3000), the second line n words of small letters. Print
how many groups of words that belong together there are, and the size of the largest group.
""",
    example="6\ntea tan eat nat ate bat",
    inputs=_vocabulary,
)
def letter_groups(text: str) -> str:
    _, *words = text.split()
    groups: dict[str, int] = {}
    for word in words:
        key = "".join(sorted(word))
        groups[key] = groups.get(key, 0) + 1
    return f"{len(groups)} {max(groups.values())}"


def _mirrors(draw: Draw, size: int) -> str:
    return draw.text(size, "aab" if size < 20 else "abc")


@problem(
    "texts",
    "hard",
    """
The only line holds a word of 1 to 300 small letters. It is cut into parts that each read the same backwards. Print the smallest number of parts.
""",
    example="abacdcb",
    inputs=_mirrors,
    sizes=(1, 2, 3, 4, 6, 9, 12, 60, 300),
)
def mirror_parts(text: str) -> str:
    word = text.strip()
    parts = [0]
    for end in range(1, len(word) + 1):
        parts.append(1 + min(parts[start] for start in range(end) if word[start:end] == word[start:end][::-1]))
    return str(parts[-1])


def _chain(draw: Draw, size: int) -> str:
    words = sorted({draw.text(3, "abcd" if size > 20 else "ab") for _ in range(min(size, 64) + 2)})
    first, last = draw.pick(words), draw.pick(words)
    return f"{first} {last}\n{len(words)}\n{' '.join(words)}"


@problem(
    "texts",
    "medium",
    """
The first line holds two words, the second line n (1 <= n <= 100), the third line n different words, among them the first two. All words consist of three small letters. A step replaces a
word by another word of the list that differs from it in exactly one letter. Print the smallest number of steps from the first word to the second, or -1 if there is no way.
""",
    example="cat dog\n6\ncat cot cog dog dot bat",
    inputs=_chain,
    sizes=(1, 2, 3, 4, 6, 9, 12, 30, 64, 64),
)
def word_chain(text: str) -> str:
    first, last, _, *words = text.split()
    steps, ahead = {first: 0}, [first]
    for word in ahead:
        for other in words:
            if other not in steps and sum(a != b for a, b in zip(word, other, strict=True)) == 1:
                steps[other] = steps[word] + 1
                ahead.append(other)
    return str(steps.get(last, -1))


def _patterns(draw: Draw, size: int) -> str:
    first = draw.text(size, "abc")
    key = dict(zip("abc", draw.pick(("yzx", "xxy")), strict=True))
    second = "".join(key[letter] for letter in first)
    if draw(0, 1):
        second = second[:-1] + draw.pick("xyzw")
    return f"{first}\n{second}"


@problem(
    "texts",
    "easy",
    """
Two lines hold a word each, both of the same length (1 to 3000 small letters). Print `yes` if the second word comes from the first by replacing each letter always by the same letter, and
different letters by different ones; otherwise `no`.
""",
    example="paper\ntitle",
    inputs=_patterns,
    sizes=(1, 2, 3, 4, 5, 6, 7, 8, 40, 300, 3000, 3000),
)
def same_pattern(text: str) -> str:
    first, second = text.split()
    pairs = set(zip(first, second, strict=True))
    return "yes" if len(pairs) == len(set(first)) == len(set(second)) else "no"
