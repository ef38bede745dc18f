"""Problems about text."""

# mypy: disable-error-code="type-arg"
# (questions show these signatures; `list` reads better there than `list[Any]`)

from ..problem import problem


@problem(
    "strings",
    "easy",
    [
        ("Banana",),
        ("",),
        ("rhythm",),
        ("AEIOU aeiou",),
        ("Why not?",),
        ("The quick brown fox jumps over the lazy dog",),
    ],
)
def count_vowels(text: str) -> int:
    """Count the vowels (a, e, i, o and u, small or capital) in a text.

    >>> count_vowels("Orange juice")
    6
    """
    return sum(letter in "aeiou" for letter in text.lower())


@problem(
    "strings",
    "easy",
    [
        ("Silent", "Listen"),
        ("a gentleman", "Elegant man"),
        ("abc", "abd"),
        ("aab", "abb"),
        ("", ""),
        ("Dormitory", "dirty room"),
        ("ab", "a"),
    ],
)
def are_anagrams(first: str, second: str) -> bool:
    """Whether two texts consist of the same letters, each used equally often. Capitals count as small letters, spaces not at all.

    >>> are_anagrams("Night", "thing")
    True
    >>> are_anagrams("night", "nights")
    False
    """
    return sorted(first.lower().replace(" ", "")) == sorted(second.lower().replace(" ", ""))


@problem("strings", "easy", [("aaabcc",), ("",), ("x",), ("abab",), ("  !!",), ("zzzzzzzzzzzz",)])
def run_lengths(text: str) -> list[list]:
    """Split a text into runs of equal characters: a list of [character, length] in order.

    >>> run_lengths("hello")
    [['h', 1], ['e', 1], ['l', 2], ['o', 1]]
    """
    runs: list[list] = []
    for character in text:
        if runs and runs[-1][0] == character:
            runs[-1][1] += 1
        else:
            runs.append([character, 1])
    return runs


@problem(
    "strings",
    "medium",
    [("Hello, World!", 3), ("xyz", 3), ("Khoor", -3), ("abc", 26), ("abc", 0), ("Zebra", 53), ("ÄÖ 12", 5)],
)
def caesar(text: str, shift: int) -> str:
    """Replace each of the letters a-z and A-Z by the one `shift` places later in the alphabet, starting again after z. The case stays,
    all other characters stay as they are, and a negative shift goes backwards.

    >>> caesar("Zoo at 9!", 2)
    'Bqq cv 9!'
    """
    shifted = []
    for character in text:
        if "a" <= character <= "z" or "A" <= character <= "Z":
            first = ord("a") if character.islower() else ord("A")
            shifted.append(chr((ord(character) - first + shift) % 26 + first))
        else:
            shifted.append(character)
    return "".join(shifted)


@problem(
    "strings",
    "easy",
    [
        (["flower", "flow", "flight"],),
        (["dog", "car"],),
        (["same", "same"],),
        (["alone"],),
        ([],),
        (["", "x"],),
        (["inter", "internal", "internet"],),
    ],
)
def common_prefix(words: list[str]) -> str:
    """The longest text that all words begin with; empty for an empty list.

    >>> common_prefix(["carpet", "carbon", "cart"])
    'car'
    """
    if not words:
        return ""
    low, high = min(words), max(words)
    length = 0
    while length < min(len(low), len(high)) and low[length] == high[length]:
        length += 1
    return low[:length]


@problem(
    "strings",
    "medium",
    [
        ("the lord of the rings",),
        ("a tale of two cities",),
        ("what it is made of",),
        ("OF MICE AND MEN",),
        ("the",),
        ("",),
        ("into the wild",),
    ],
)
def headline(title: str) -> str:
    """Write a title in headline style: each word gets a capital first letter and small ones behind it, but the words a, an, and, in, of, on,
    or, the and to stay small unless they are the first or the last word. Words are separated by single spaces.

    >>> headline("the cat in the hat")
    'The Cat in the Hat'
    """
    small = {"a", "an", "and", "in", "of", "on", "or", "the", "to"}
    words = title.lower().split(" ")
    last = len(words) - 1
    return " ".join(
        word if word in small and 0 < place < last else word[:1].upper() + word[1:] for place, word in enumerate(words)
    )


@problem(
    "strings",
    "medium",
    [
        ("the quick brown fox jumps", 10),
        ("one", 10),
        ("a bb ccc dddd", 4),
        ("supercalifragilistic is long", 8),
        ("", 5),
        ("aaa bbb ccc", 7),
        ("aaa bbb ccc", 6),
    ],
)
def wrap_words(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` characters. Words are separated by single spaces; each line takes as many words as fit, and
    a word longer than the width stands alone in its line.

    >>> wrap_words("to be or not to be", 8)
    ['to be or', 'not to', 'be']
    """
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


@problem(
    "strings",
    "medium",
    [("([]{})",), ("([)]",), ("(((",), ("",), ("a(b)c]",), ("{[()()]}[]",), ("f(x[1]) = {y}",), (")(",)],
)
def balanced(text: str) -> bool:
    """Whether every bracket ( [ { has its partner ) ] } and they are properly nested. Other characters do not matter.

    >>> balanced("f(a[0])")
    True
    >>> balanced("(]")
    False
    """
    partner = {")": "(", "]": "[", "}": "{"}
    still_open = []
    for character in text:
        if character in "([{":
            still_open.append(character)
        elif character in partner and (not still_open or still_open.pop() != partner[character]):
            return False
    return not still_open


@problem(
    "strings",
    "hard",
    [
        ("kitten", "sitting"),
        ("", "abc"),
        ("abc", "abc"),
        ("flaw", "lawn"),
        ("intention", "execution"),
        ("a", "b"),
        ("saturday", "sunday"),
    ],
)
def edit_distance(first: str, second: str) -> int:
    """The smallest number of changes that turn the first text into the second, where a change inserts, removes or replaces one character.

    >>> edit_distance("house", "mouse")
    1
    >>> edit_distance("stone", "tones")
    2
    """
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(second, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]


@problem(
    "strings",
    "hard",
    [("babad",), ("cbbd",), ("a",), ("",), ("forgeeksskeegfor",), ("abcde",), ("aacabdkacaa",), ("xaabbaay",)],
)
def longest_palindrome(text: str) -> str:
    """The longest part of a text that reads the same backwards; the leftmost one if there are several.

    >>> longest_palindrome("bananas")
    'anana'
    """
    best = ""
    for centre in range(len(text)):
        for right in (centre, centre + 1):
            left = centre
            while left >= 0 and right < len(text) and text[left] == text[right]:
                left, right = left - 1, right + 1
            if right - left - 1 > len(best):
                best = text[left + 1 : right]
    return best


@problem("strings", "easy", [(1,), (2,), (3,), (4,), (11,), (12,), (13,), (21,), (112,), (103,), (0,)])
def ordinal(number: int) -> str:
    """A number as an English ordinal in digits.

    >>> ordinal(22)
    '22nd'
    >>> ordinal(111)
    '111th'
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


@problem("strings", "hard", [(0,), (7,), (13,), (20,), (42,), (100,), (115,), (999,), (640,), (501,)])
def in_words(number: int) -> str:
    """A number from 0 to 999 in English words, with a hyphen between tens and ones and "and" after the hundreds.

    >>> in_words(305)
    'three hundred and five'
    >>> in_words(88)
    'eighty-eight'
    """
    ones = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ]
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    hundreds, rest = divmod(number, 100)
    below = ones[rest] if rest < 20 else tens[rest // 10 - 2] + (f"-{ones[rest % 10]}" if rest % 10 else "")
    if not hundreds:
        return below
    return f"{ones[hundreds]} hundred" + (f" and {below}" if rest else "")
