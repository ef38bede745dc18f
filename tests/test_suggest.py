"""Did-you-mean and search."""

import pytest

from gymflow.suggest import closest, did_you_mean, relevance

KNOWN = ["arithmetic", "mcqa", "workplace", "word_guess"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("arithmetc", "arithmetic"),
        ("MCQA", "mcqa"),
        ("mqca", "mcqa"),
        ("work", "workplace"),
        ("wor", None),
        ("", None),
        ("chess", None),
    ],
)
def test_the_closest_name(name: str, meant: str | None) -> None:
    assert closest(name, KNOWN) == meant


def test_an_error_names_the_closest_or_what_there_is() -> None:
    assert did_you_mean("workplce", KNOWN) == "did you mean workplace?"
    assert did_you_mean("x", KNOWN) == "known: arithmetic, mcqa, word_guess, workplace"
    assert did_you_mean("x", []) == "there are none."
    assert did_you_mean("x", map(str, range(100, 120))).endswith("… (20 in all)")


def test_a_substring_is_most_relevant_and_something_else_is_not_relevant() -> None:
    assert relevance("Office", ["mail", "a small office"]) == 100
    assert 0 < relevance("ofice", ["mail", "a small office"]) < 100
    assert relevance("zebra", ["mail", "a small office"]) == 0
    assert relevance("x", []) == 0
