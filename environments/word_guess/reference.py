"""A player that knows the host's words: it keeps those that would have drawn the same answers and asks what splits them best.

It sees what any agent sees, the rules' text and the host's messages, and shows that every game can be won.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

from .rules import Rule
from .words import words_of

_LENGTH = re.compile(r"(\d)[ -]letter|has (\d) letters")
_OPENING = re.compile(r"I open for you with ([A-Z]+)\.\n(.+)")
_NEXT_WORD = re.compile(r"The next word has (\d) letters")
CONSIDERED = 16
"""Guesses and candidates that are weighed against each other; more make it slower and hardly better."""


class Player:
    """Plays one game. `message` says what to send first and after each message of the host."""

    def __init__(self, rule: Rule, text: str) -> None:
        length = _LENGTH.search(text)
        if length is None:
            raise ValueError("the text of the game does not say how long the word is")
        self.rule = rule
        self._begin(int(length[1] or length[2]))

    def message(self, host: str | None) -> str:
        """The next guess, given the host's last message (None where the host has not spoken yet)."""
        if host is not None:
            self._hear(host)
        self._said = self._choose()
        return f"Guess: {self._said.upper()}"

    def _begin(self, length: int) -> None:
        self._words = words_of(length)
        self._candidates = self._words
        self._asked: list[str] = []
        self._said = ""

    def _hear(self, host: str) -> None:
        if next_word := _NEXT_WORD.search(host):
            self._begin(int(next_word[1]))
        elif opening := _OPENING.match(host):
            self._learn(opening[1].lower(), opening[2])
        else:
            self._learn(self._said, host.split("\n")[0])

    def _learn(self, guess: str, answer: str) -> None:
        self._candidates = [
            word
            for word in self._candidates
            if word != guess and self.rule.feedback(word, guess, self._asked) == answer
        ]
        self._asked.append(guess)

    def _choose(self) -> str:
        """The guess after which the fewest candidates are left on average; a candidate before others."""
        if len(self._candidates) <= 2:
            return self._candidates[0]
        candidates = _spread(self._candidates)
        letters = [
            letter for letter in string.ascii_lowercase if self.rule.single_letters and letter not in self._asked
        ]
        guesses = [word for word in (*candidates, *letters, *_spread(self._words)) if word not in self._asked]
        return min(guesses, key=lambda guess: (self._left(guess, candidates), guess not in self._candidates))

    def _left(self, guess: str, candidates: Sequence[str]) -> int:
        answers = Counter(self.rule.feedback(word, guess, self._asked) for word in candidates)
        return sum(count * count for count in answers.values())


def _spread(words: Sequence[str]) -> Sequence[str]:
    """Some of the words, from all over the list."""
    return words[:: max(1, len(words) // CONSIDERED)]
