"""The host of the game: holds the secret words and answers guesses.

`task.state` is `{"rule": NAME, "secrets": [WORD, …], "opening": WORD?}`. The words are asked for one after another, each with
the rule's number of guesses; a word that is found gives its share of the reward of 1.0 as a step reward.
"""

import re
from typing import Any

from gymflow.environments import Observation, Session, Snapshot

from .rules import RULES

# Markdown emphasis or quotes around the word are a matter of style.
_GUESS = re.compile(r"\bguess\b[*_\"'` ]*:[*_\"'` ]*([a-z]+)(?![a-z-])", re.IGNORECASE)


class Host(Session):
    """Every message of the agent is one guess, whether or not a word can be read out of it, so no game goes on for ever."""

    async def start(self) -> Observation:
        state: dict[str, Any] = self.task.state or {}
        self.rule = RULES[state["rule"]]
        self.secrets: list[str] = state["secrets"]
        self.found = [False] * len(self.secrets)
        self.word = 0
        self.messages = 0
        self.left = self.rule.guesses
        self.guesses: list[str] = []
        opening: str | None = state.get("opening")
        if opening is None:
            return Observation()
        answer = self.rule.feedback(self.secrets[0], opening, ())
        self.guesses.append(opening)
        return Observation(messages=[_said(f"I open for you with {opening.upper()}.\n{answer}\n{self._next_guess()}")])

    async def respond(self, message: str) -> Observation:
        self.messages += 1
        self.left -= 1
        secret = self.secrets[self.word]
        guess = read_guess(message)
        if guess == secret:
            self.found[self.word] = True
            return self._next_word("That is my word.", reward=1 / len(self.secrets))
        if guess is None:
            answer = 'I found no guess. End your message with a line such as "Guess: WORD".'
        elif len(guess) != len(secret) and not (self.rule.single_letters and len(guess) == 1):
            answer = f"{guess.upper()} does not have {len(secret)} letters, so I say nothing about it."
        else:
            answer = self.rule.feedback(secret, guess, self.guesses)
            self.guesses.append(guess)
        if not self.left:
            return self._next_word(f"{answer}\nNo guesses left. My word was {secret.upper()}.", reward=0.0)
        return Observation(messages=[_said(f"{answer}\n{self._next_guess()}")], reward=0.0)

    async def snapshot(self) -> Snapshot:
        return Snapshot({"secrets": self.secrets, "found": self.found, "messages": self.messages})

    def _next_word(self, answer: str, reward: float) -> Observation:
        self.word += 1
        self.left = self.rule.guesses
        self.guesses = []
        if self.word == len(self.secrets):
            return Observation(messages=[_said(answer)], reward=reward, done=True)
        length = len(self.secrets[self.word])
        return Observation(
            messages=[_said(f"{answer}\nThe next word has {length} letters. {self._next_guess()}")], reward=reward
        )

    def _next_guess(self) -> str:
        return "This is your last guess." if self.left == 1 else f"You have {self.left} guesses left."


def read_guess(message: str) -> str | None:
    """The last `Guess: WORD` of a message, in lower case.

    >>> read_guess("Not Guess: stone, so **Guess:** *Crane*.")
    'crane'
    """
    found = _GUESS.findall(message)
    return found[-1].lower() if found else None


def _said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}
