"""The rules: what the host says about a guess.

A rule is a pure function of the secret, the guess and the guesses before it, so whoever knows the words can keep those
that would have drawn the same answers:

    >>> RULES["counts"].feedback("crane", "caner", ())
    'Right letter in the right place: 1. Right letter in the wrong place: 4.'
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Feedback = Callable[[str, str, Sequence[str]], str]


@dataclass(frozen=True)
class Rule:
    """How guesses are answered, and how many there are for one word."""

    name: str
    difficulty: str
    guesses: int
    feedback: Feedback
    single_letters: bool = False
    """Whether a guess may also be one letter."""


def marks(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """One mark a letter: + in its place, ? elsewhere in the word, - not (or not once more) in the word."""
    spare = Counter(s for s, g in zip(secret, guess, strict=True) if s != g)
    shown = []
    for s, g in zip(secret, guess, strict=True):
        if s == g:
            shown.append("+")
        elif spare[g] > 0:
            spare[g] -= 1
            shown.append("?")
        else:
            shown.append("-")
    return " ".join(shown)


def counts(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """As in Mastermind: how many letters are right, in and out of place, but not which."""
    placed = _placed(secret, guess)
    return f"Right letter in the right place: {placed}. Right letter in the wrong place: {_shared(secret, guess) - placed}."


def shared(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """As in Jotto: letters in common, each counted as often as both words have it."""
    return f"Letters in common: {_shared(secret, guess)}."


def placed(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """Letters in the right place; nothing about the others."""
    return f"Letters in the right place: {_placed(secret, guess)}."


def order(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """On which side of the guess the secret stands in a dictionary."""
    return f"My word comes {'before' if secret < guess else 'after'} {guess.upper()} in a dictionary."


def first_difference(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """How many leading letters agree, and on which side the next one lies."""
    same = next((i for i, (s, g) in enumerate(zip(secret, guess, strict=True)) if s != g), len(secret))
    if same == len(secret):
        return f"All {same} letters agree."
    side = "earlier" if secret[same] < guess[same] else "later"
    return f"Leading letters that agree: {same}. The next letter of my word is {side} in the alphabet than yours."


def arrows(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """For every place whether the secret's letter is the same, earlier or later in the alphabet."""
    return " ".join("=" if s == g else "<" if s < g else ">" for s, g in zip(secret, guess, strict=True))


def ends(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """Whether the outer letters are right, and how many of the inner ones occur in the secret's inner part."""
    inner = _shared(secret[1:-1], guess[1:-1])
    return f"First letter: {_yes(secret[0] == guess[0])}. Last letter: {_yes(secret[-1] == guess[-1])}. Inner letters in common: {inner}."


def sounds(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """Letters in common, vowels and consonants apart."""
    vowels, consonants = (
        sum((Counter(filter(kind, secret)) & Counter(filter(kind, guess))).values()) for kind in (_vowel, _consonant)
    )
    return f"Vowels in common: {vowels}. Consonants in common: {consonants}."


def warmer(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """A first count of the letters in common, then only whether the guess has more of them than the one before it."""
    now = _shared(secret, guess)
    if not earlier:
        return f"To begin with: {now} letters in common."
    before = _shared(secret, earlier[-1])
    return "Warmer." if now > before else "Colder." if now < before else "No change."


def hangman(secret: str, guess: str, earlier: Sequence[str] = ()) -> str:
    """The secret with all letters shown that were asked for so far; a wrong word shows nothing new."""
    asked = {g for g in (*earlier, guess) if len(g) == 1}
    return " ".join(letter if letter in asked else "_" for letter in secret)


RULES = {
    rule.name: rule
    for rule in (
        Rule("marks", "easy", 7, marks),
        Rule("arrows", "easy", 7, arrows),
        Rule("hangman", "easy", 14, hangman, single_letters=True),
        Rule("first-difference", "easy", 12, first_difference),
        Rule("order", "medium", 14, order),
        Rule("counts", "medium", 9, counts),
        Rule("ends", "medium", 10, ends),
        Rule("sounds", "medium", 10, sounds),
        Rule("shared", "hard", 11, shared),
        Rule("placed", "hard", 14, placed),
        Rule("warmer", "hard", 14, warmer),
    )
}


def _placed(secret: str, guess: str) -> int:
    return sum(s == g for s, g in zip(secret, guess, strict=True))


def _shared(secret: str, guess: str) -> int:
    return (Counter(secret) & Counter(guess)).total()


def _yes(right: bool) -> str:
    return "right" if right else "wrong"


def _vowel(letter: str) -> bool:
    return letter in "aeiou"


def _consonant(letter: str) -> bool:
    return not _vowel(letter)
