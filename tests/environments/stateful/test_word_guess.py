"""The word game: what the host says under each rule, how a game goes on, and who wins it."""

import random
import re
from collections import Counter
from string import ascii_lowercase

import pytest
from gymflow.environments.word_guess.reference import Player
from gymflow.environments.word_guess.rules import RULES
from gymflow.environments.word_guess.session import read_guess
from gymflow.environments.word_guess.tasks import DIFFICULTIES, SETTINGS, generate, is_held_out
from gymflow.environments.word_guess.words import CATEGORIES, LENGTHS, WORDS, words_of
from hypothesis import given
from hypothesis import strategies as st

from gymflow.contracts.outcome import StopReason
from gymflow.contracts.task import Task

GAMES = [Task(**row) for row in generate("test")]

words = st.integers(4, 6).flatmap(lambda n: st.tuples(*[st.text(ascii_lowercase[:6], min_size=n, max_size=n)] * 2))


def game(rule: str, setting: str) -> Task:
    return next(task for task in GAMES if {f"template-{rule}", setting} <= set(task.tags))


def text_of(task: Task) -> str:
    return task.responses_create_params.input[0]["content"]


async def host_of(stage, task: Task):
    """A host and the last thing it said, None at the beginning of most games."""
    host = stage("word_guess").session(task)
    start = await host.start()
    return host, (start.messages[-1]["content"] if start.messages else None)


async def play(stage, task: Task, player) -> list[str]:
    """The messages of a player who answers the host's last message, until the game is over."""
    host, heard = await host_of(stage, task)
    messages = []
    while True:
        messages.append(player(heard))
        answer = await host.respond(messages[-1])
        if answer.done:
            return messages
        heard = answer.messages[-1]["content"]


# Rules


@pytest.mark.parametrize(
    ("rule", "secret", "guess", "earlier", "answer"),
    [
        ("marks", "crane", "caner", (), "+ ? ? ? ?"),
        ("marks", "apple", "paper", (), "? ? + ? -"),
        ("marks", "abbey", "babes", (), "? ? + + -"),
        ("marks", "lemon", "llama", (), "+ - - ? -"),
        ("marks", "crane", "crane", (), "+ + + + +"),
        ("arrows", "crane", "candy", (), "= > < > <"),
        ("counts", "abbey", "babes", (), "Right letter in the right place: 2. Right letter in the wrong place: 2."),
        ("shared", "abbey", "bobby", (), "Letters in common: 3."),
        ("placed", "crane", "brace", (), "Letters in the right place: 3."),
        ("order", "crane", "crank", (), "My word comes before CRANK in a dictionary."),
        ("order", "crane", "apple", (), "My word comes after APPLE in a dictionary."),
        (
            *("first-difference", "crane", "crank", ()),
            "Leading letters that agree: 4. The next letter of my word is earlier in the alphabet than yours.",
        ),
        ("ends", "crane", "crate", (), "First letter: right. Last letter: right. Inner letters in common: 2."),
        ("ends", "crane", "necks", (), "First letter: wrong. Last letter: wrong. Inner letters in common: 0."),
        ("sounds", "movie", "voice", (), "Vowels in common: 3. Consonants in common: 1."),
        ("warmer", "crane", "crate", (), "To begin with: 4 letters in common."),
        ("warmer", "crane", "lemon", ("crate",), "Colder."),
        ("warmer", "crane", "crate", ("lemon",), "Warmer."),
        ("warmer", "crane", "brace", ("crate",), "No change."),
        ("hangman", "banana", "a", (), "_ a _ a _ a"),
        ("hangman", "banana", "n", ("a", "e"), "_ a n a n a"),
        ("hangman", "banana", "orange", ("a",), "_ a _ a _ a"),
    ],
)
def test_host_answers(rule, secret, guess, earlier, answer):
    assert RULES[rule].feedback(secret, guess, earlier) == answer


@given(words)
def test_rules_agree_with_each_other(pair):
    secret, guess = pair
    marks = RULES["marks"].feedback(secret, guess, ())
    common = sum((Counter(secret) & Counter(guess)).values())
    placed = sum(s == g for s, g in zip(secret, guess, strict=True))

    assert marks.count("+") == placed == RULES["arrows"].feedback(secret, guess, ()).count("=")
    assert marks.count("+") + marks.count("?") == common
    assert RULES["shared"].feedback(secret, guess, ()) == RULES["shared"].feedback(guess, secret, ())
    assert sum(map(int, re.findall(r"\d+", RULES["counts"].feedback(secret, guess, ())))) == common
    assert sum(map(int, re.findall(r"\d+", RULES["sounds"].feedback(secret, guess, ())))) == common


@given(words)
def test_only_the_secret_is_all_right(pair):
    secret, guess = pair
    if secret != guess:
        for rule in ("marks", "arrows", "placed", "first-difference"):
            assert RULES[rule].feedback(secret, guess, ()) != RULES[rule].feedback(secret, secret, ())


# Words and games


def test_words_are_in_lower_case_unique_and_of_known_length():
    assert len(WORDS) == len(set(WORDS)) > 1300
    assert all(re.fullmatch("[a-z]+", word) and len(word) in LENGTHS for word in WORDS)
    assert {word for words in CATEGORIES.values() for word in words} <= set(WORDS)


def test_training_never_asks_for_a_secret_of_the_test_split():
    test, train = (
        {word for row in generate(split, 132) for word in row["state"]["secrets"]} for split in ("test", "train")
    )

    assert all(is_held_out(word) for word in test)
    assert not test & train
    assert 0.4 < sum(map(is_held_out, WORDS)) / len(WORDS) < 0.6


def test_a_split_holds_every_rule_in_every_setting_once():
    assert len(GAMES) == len(RULES) * len(SETTINGS) == len({tuple(task.tags[1:]) for task in GAMES})
    secrets = [secret for task in GAMES for secret in task.state["secrets"]]
    assert len(set(secrets)) == len(secrets)


def test_what_the_text_says_about_the_word_is_true():
    for task in GAMES:
        secret = task.state["secrets"][0]
        assert str(len(secret)) in re.findall(r"\d+", text_of(task))
        assert str(RULES[task.state["rule"]].guesses) in re.findall(r"\d+", text_of(task))
        assert not any(secret in re.findall("[a-z]+", text_of(task).lower()) for secret in task.state["secrets"])
        if "letter" in task.tags:
            assert re.search("contains the letter ([A-Z])", text_of(task))[1].lower() in secret
        if "category" in task.tags:
            named = re.search(r"the name of (?:an? )?(.+?) that is spelled", text_of(task))[1]
            assert secret in CATEGORIES["food" if named.startswith("something to eat") else named]


def test_two_words_in_a_row_are_harder_than_one():
    for rule in RULES:
        one, two = (
            DIFFICULTIES.index(next(iter(set(game(rule, setting).tags) & set(DIFFICULTIES))))
            for setting in ("plain", "series")
        )
        assert two == min(one + 1, 2)


# How a game goes


@pytest.mark.parametrize(
    ("message", "guess"),
    [
        ("Guess: CRANE", "crane"),
        ("guess:crane", "crane"),
        ("**Guess:** *Crane*.", "crane"),
        ("Guess : `crane`", "crane"),
        ('Guess: "crane"!', "crane"),
        ("Not Guess: stone.\nGuess: crane", "crane"),
        ("My best guess is crane.", None),
        ("crane", None),
        ("Guess:", None),
        ("Guess: 12345", None),
        ("", None),
    ],
)
def test_guess_is_read_from_the_last_line_that_states_one(message, guess):
    assert read_guess(message) == guess


async def test_found_word_ends_the_game_with_the_whole_reward(stage):
    host, _ = await host_of(stage, game("marks", "plain"))
    answer = await host.respond(f"Guess: {host.secrets[0]}")

    assert (answer.reward, answer.done) == (1.0, True)


async def test_every_message_uses_up_a_guess_until_none_is_left(stage):
    task = game("marks", "plain")
    host, _ = await host_of(stage, task)
    secret, limit = task.state["secrets"][0], RULES["marks"].guesses
    answers = [await host.respond(text) for text in ["", "Guess: a", "no idea", *["Guess: zzzz"] * (limit - 3)]]

    assert [answer.done for answer in answers] == [False] * (limit - 1) + [True]
    assert {answer.reward for answer in answers} == {0.0}
    told = [answer.messages[0]["content"] for answer in answers]
    assert told[0].startswith("I found no guess.")
    assert "A does not have 4 letters" in told[1]
    assert told[-2].endswith("This is your last guess.")
    assert told[-1].endswith(f"My word was {secret.upper()}.")


async def test_series_goes_on_to_the_second_word_whatever_became_of_the_first(stage):
    task = game("counts", "series")
    first, second = task.state["secrets"]
    limit = RULES["counts"].guesses
    host, _ = await host_of(stage, task)
    lost = [await host.respond("pass") for _ in range(limit)]
    found = await host.respond(f"Guess: {second}")

    assert f"My word was {first.upper()}." in lost[-1].messages[0]["content"]
    assert f"The next word has {len(second)} letters. You have {limit} guesses left." in lost[-1].messages[0]["content"]
    assert (found.reward, found.done) == (0.5, True)
    assert (await host.snapshot()).state == {"secrets": [first, second], "found": [False, True], "messages": limit + 1}


async def test_opening_guess_is_answered_and_costs_nothing(stage):
    task = game("shared", "opening")
    _, heard = await host_of(stage, task)
    opening, secret = task.state["opening"], task.state["secrets"][0]

    assert heard.split("\n") == [
        f"I open for you with {opening.upper()}.",
        RULES["shared"].feedback(secret, opening, ()),
        f"You have {RULES['shared'].guesses} guesses left.",
    ]


# Agents


async def test_reference_agent_wins_every_game_in_the_default_harness(stage):
    room = stage("word_guess")
    for task in GAMES:
        player = Player(RULES[task.state["rule"]], text_of(task))

        def answer(history, player=player):
            return room.said(player.message(history[-1]["content"] if len(history) > 1 else None))[0]

        verdict, trajectory = await room.run(task, answer)
        assert verdict.reward == 1.0, task.task_id
        assert trajectory.stop_reason == StopReason.ENVIRONMENT_DONE
        assert sum(turn.step.reward for turn in trajectory.turns) == 1.0


async def test_blind_guesses_score_nearly_zero(stage):
    room, rng = stage("word_guess"), random.Random(0)

    async def reward(task: Task) -> float:
        pool = words_of(len(task.state["secrets"][0]))
        messages = await play(stage, task, lambda heard: f"Guess: {rng.choice(pool)}")
        return (await room.verdict(task, room.said(*messages))).reward

    rewards = [await reward(task) for task in GAMES]
    assert sum(rewards) / len(rewards) < 0.1


async def test_agent_that_says_nothing_scores_zero(stage):
    room = stage("word_guess")

    assert await room.mean_reward(lambda task: room.said("")) == 0.0


async def test_equal_messages_leave_equal_snapshots(stage):
    room = stage("word_guess")
    for task in GAMES[::7]:
        outputs = room.said("Guess: apple", "Guess: a", "no")
        assert await room.snapshot(task, outputs) == await room.snapshot(task, outputs)
