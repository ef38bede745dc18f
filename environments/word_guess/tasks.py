"""The games: eleven rules, each told in six settings, no two texts alike.

Which split a word belongs to is decided by a hash of the word, so training never meets a secret of the `test` split. Only
`random()` is drawn from the generator, which every Python version promises to keep.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from .rules import RULES, Rule
from .words import CATEGORIES, LENGTHS, words_of

Item = TypeVar("Item")

HELD_OUT_SHARE = 0.5
SPLITS = ("test", "train")
DIFFICULTIES = ("easy", "medium", "hard")

# Per rule: how the answers are explained in full, and in a hurry.
EXPLANATIONS = {
    "marks": (
        "After each guess I mark its letters one by one: + means right letter in the right place, ? means the letter occurs in "
        "my word but elsewhere, - means it does not occur (or not a second time).",
        "I mark every letter of your guess: + in place, ? in the word but misplaced, - not in the word or not that often.",
    ),
    "counts": (
        "After each guess I tell you two numbers: how many letters are right and in the right place, and how many further "
        "letters occur in my word but in another place. I never say which ones they are.",
        "As in Mastermind you only learn how many letters are right in place and how many are right but out of place.",
    ),
    "shared": (
        "After each guess I say how many letters it has in common with my word, wherever they stand. A letter that both words "
        "have twice counts twice.",
        "My only answer is the number of letters that our two words share, positions aside, double letters counted twice "
        "if both have them.",
    ),
    "placed": (
        "After each guess I say how many of its letters stand in the right place. About letters in the wrong place I say nothing.",
        "You get one number per guess, the count of letters that sit exactly where they do in my word.",
    ),
    "order": (
        "After each guess I say whether my word comes before or after it in a dictionary.",
        "I answer like a dictionary thumbed through: my word is either before yours or after yours in alphabetical order.",
    ),
    "first-difference": (
        "I compare your guess with my word from left to right. I tell you how many leading letters agree, and whether my next "
        "letter is earlier or later in the alphabet than yours.",
        "From the left I count agreeing letters up to the first one that differs, and say if mine is earlier or later in the "
        "alphabet there.",
    ),
    "arrows": (
        "After each guess I give one sign per letter: = if it is right, < if my letter at that place comes earlier in the "
        "alphabet, > if it comes later.",
        "For each place I write = for a hit, < if my letter is nearer to the start of the alphabet, > if it is nearer to the end.",
    ),
    "ends": (
        "After each guess I say whether its first letter is right, whether its last letter is right, and how many letters the "
        "inner parts of the two words (all but the first and last letter) have in common.",
        "I judge the outside and the inside: first letter right or wrong, last letter right or wrong, and a count of shared "
        "letters among those in between.",
    ),
    "sounds": (
        "After each guess I say how many vowels (a, e, i, o, u) and how many consonants it has in common with my word, "
        "regardless of their places.",
        "You hear two counts, vowels in common and consonants in common; where they stand does not matter, and only a, e, i, "
        "o, u are vowels.",
    ),
    "warmer": (
        "For your first guess I say how many letters it has in common with my word. From then on I only say whether a guess is "
        "warmer (more letters in common than the guess before it), colder (fewer) or no change.",
        "We play hot and cold: the first answer is a count of common letters, every later one compares your guess with your "
        "previous one by that count and is warmer, colder or no change.",
    ),
    "hangman": (
        "You may name a single letter or try a whole word. After a letter I show my word with all letters you have named so "
        "far, and _ for the others. A wrong word tells you nothing more.",
        "It goes like hangman: a guess is one letter, which I uncover wherever it occurs, or the whole word when you know it.",
    ),
}

# Per setting: what comes before the explanation, and what comes after it.
_PLAIN = (
    "Let's play a word game. I am thinking of an everyday English word with {length} letters, and you have {guesses} guesses to "
    "find it.",
    'You may think aloud, but end every message with one line of the form "Guess: WORD".',
)
_CATEGORY = (
    "I have picked the name of {category} that is spelled with {length} letters. Can you work out which one within {guesses} "
    "attempts?",
    'Write your attempt at the end of your message as "Guess: WORD".',
)
_OPENING = (
    "Find my secret word. It is a common {length}-letter word, I will make an opening guess on your behalf, and after it you "
    "have {guesses} of your own.",
    'Close each message with "Guess: WORD"; anything before that line is yours to reason in.',
)
_LETTER = (
    "There is a {length}-letter word on the card in front of me. I give one thing away at the start: it contains the letter "
    "{letter}. Name the word in at most {guesses} tries.",
    'A try only counts as a word if your message ends in a line "Guess: WORD", but every message uses one up.',
)
_SERIES = (
    "This round has two secret words, one after the other. The first has {length} letters; when you have found it, or have used "
    "up your {guesses} guesses for it, we move on to the second, with {guesses} guesses again. Each is worth half.",
    'Send one guess per message, on a last line that reads "Guess: WORD".',
)
_BRIEF = (
    "Guess my word! {length} letters, {guesses} guesses.",
    'Reply with "Guess: WORD".',
)
SETTINGS = {
    "plain": (_PLAIN, 0),
    "category": (_CATEGORY, 1),
    "opening": (_OPENING, 0),
    "letter": (_LETTER, 1),
    "series": (_SERIES, 0),
    "brief": (_BRIEF, 1),
}
"""Setting -> (texts, which explanation it uses)."""

_ARTICLES = {category: f"an {category}" if category[0] in "aeiou" else f"a {category}" for category in CATEGORIES}
_ARTICLES["food"] = "something to eat or cook with"


def generate(split: str, count: int = 66, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield `count` games of a split (`test` or `train`). Each 66 of them hold every rule in every setting once."""
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}, expected one of {', '.join(SPLITS)}")
    rng = random.Random(f"word_guess {split} {seed}")
    used: set[tuple[str, str]] = set()
    for index in range(count):
        rule = list(RULES.values())[index % len(RULES)]
        setting = list(SETTINGS)[index // len(RULES) % len(SETTINGS)]
        # Six lengths of a rule cycle through its six settings, and the next rule begins one further on.
        length = LENGTHS[(index // len(RULES) + index) % len(LENGTHS)]
        yield _game(f"{split}-{seed}-{index:04d}", rng, split, rule, setting, length, used)


@cache
def is_held_out(word: str) -> bool:
    """Whether a word is a secret of the `test` split only."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") < HELD_OUT_SHARE * 2**32


def _game(
    task_id: str, rng: random.Random, split: str, rule: Rule, setting: str, length: int, used: set[tuple[str, str]]
) -> dict[str, Any]:
    category = _pick(rng, [c for c in CATEGORIES if len(words_of(length, c)) >= 20]) if setting == "category" else None
    secrets = [_secret(rng, split, rule, length, category, used)]
    if setting == "series":
        secrets.append(_secret(rng, split, rule, _pick(rng, LENGTHS), None, used))
    state: dict[str, Any] = {"rule": rule.name, "secrets": secrets}
    if setting == "opening":
        state["opening"] = "e" if rule.single_letters else _pick(rng, [w for w in words_of(length) if w != secrets[0]])
    (before, after), explanation = SETTINGS[setting]
    facts = {
        "length": length,
        "guesses": rule.guesses,
        "category": _ARTICLES[category] if category else "",
        "letter": _pick(rng, secrets[0]).upper(),
    }
    text = " ".join((before.format(**facts), EXPLANATIONS[rule.name][explanation], after))
    harder = min(DIFFICULTIES.index(rule.difficulty) + (setting == "series"), len(DIFFICULTIES) - 1)
    return {
        "task_id": task_id,
        "responses_create_params": {"input": [{"role": "user", "content": text}]},
        "state": state,
        "tags": [DIFFICULTIES[harder], f"template-{rule.name}", setting],
    }


def _secret(
    rng: random.Random, split: str, rule: Rule, length: int, category: str | None, used: set[tuple[str, str]]
) -> str:
    """A word of the split, if possible one that nobody was asked for yet, at least not under the same rule."""
    words = [word for word in words_of(length, category) if is_held_out(word) == (split == "test")]
    asked = {word for _, word in used}
    fresh = [word for word in words if word not in asked] or [word for word in words if (rule.name, word) not in used]
    word = _pick(rng, fresh or words)
    used.add((rule.name, word))
    return word


def _pick(rng: random.Random, items: Sequence[Item]) -> Item:
    return items[int(rng.random() * len(items))]
