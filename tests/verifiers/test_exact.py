"""The final text against expected strings."""

from typing import Any

import pytest
from gymflow.verifiers.exact import Exact, ExactTask
from pydantic import ValidationError

from gymflow.verifiers import VerifierTimeout, exact


@pytest.mark.parametrize(
    ("parameters", "expected", "text", "reward"),
    [
        ({}, "Paris", " Paris\n", 1.0),
        ({}, "Paris", "paris", 0.0),
        ({}, ["Paris", "Lutetia"], "Lutetia", 1.0),
        ({}, 46, "46", 1.0),
        ({"match": "exact"}, "Paris", "Paris ", 0.0),
        ({"match": "normalized"}, "The  Netherlands", "“the netherlands”"[1:-1] + ".", 1.0),
        ({"match": "normalized"}, "Ｐａｒｉｓ", "paris", 1.0),
        ({"match": "contains"}, "Paris", "It is Paris, of course.", 1.0),
        ({"match": "contains"}, "5", "It is 25.", 0.0),
        ({"match": "regex"}, r"(?i)par(is|ys)", "PARIS", 1.0),
        ({"match": "regex"}, r"par", "paris", 0.0),
        ({"extraction": "final_answer"}, "46", "12 + 34 makes\n**Answer: 46**", 1.0),
        ({"extraction": "final_answer"}, "46", "It is \\boxed{46}", 1.0),
        ({"extraction": "boxed"}, "Paris", "\\boxed{\\text{Paris}}", 1.0),
        ({"extraction": "last_line"}, "correct", "The proof holds.\n\ncorrect", 1.0),
        ({"pattern": r"<a>(.*?)</a>"}, "2", "<a>1</a><a>2</a>", 1.0),
        ({"pattern": r"<a>(.*?)</a>"}, "1", "<a>1</a><a>2</a>", 0.0),
    ],
)
def test_extraction_and_comparison(
    parameters: dict[str, Any], expected: Any, text: str, reward: float, score: Any, said: Any
) -> None:
    verdict = score(Exact, {"expected_answer": expected}, said(text), parameters)
    assert verdict.reward == reward
    assert (verdict.reason is None) == (reward == 1.0)


def test_the_row_chooses_where_the_parameters_leave_it_open(score: Any, said: Any) -> None:
    row = {"expected_answer": "Paris", "extraction_mode": "boxed", "case_sensitive": False}
    assert score(Exact, row, said("\\boxed{PARIS}")).reward == 1.0
    assert score(Exact, row | {"case_sensitive": True}, said("\\boxed{PARIS}")).reward == 0.0
    assert score(Exact, row, said("PARIS"), {"extraction": "full_response"}).reward == 1.0


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_message_has_no_answer(text: str, score: Any, said: Any) -> None:
    verdict = score(Exact, {"expected_answer": " "}, said(text))
    assert verdict.reward == 0.0
    assert "no answer" in verdict.reason


def test_the_lenient_twin_looks_everywhere(score: Any, said: Any) -> None:
    lenient = Exact().lenient()
    assert lenient is not None
    evidence = said("After some thought:\n**Answer:** paris.")
    assert score(Exact, {"expected_answer": "Paris"}, evidence).reward == 0.0
    assert score(Exact, {"expected_answer": "Paris"}, evidence, lenient.model_dump()).reward == 1.0
    assert Exact(lenient).lenient() is None


async def test_a_pattern_that_does_not_end_is_undecided(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "PATTERN_TIMEOUT_S", 0.5)
    verifier = exact.Exact(exact.Exact.Parameters(pattern="(a+)+$"))
    with pytest.raises(VerifierTimeout):
        await verifier.verify(ExactTask(expected_answer=["x"]), said("a" * 60 + "b"))
    await verifier.close()


def test_a_broken_pattern_is_refused_as_a_parameter() -> None:
    with pytest.raises(ValidationError, match="regular expression"):
        Exact.Parameters(pattern="(")
