"""Mathematical equivalence: what is equal, what is not, and what is refused before it can do harm."""

from typing import Any

import pytest
from gymflow.verifiers._numbers import agree
from gymflow.verifiers.math import Math, MathTask, extract
from pydantic import ValidationError

from gymflow.verifiers import VerifierTimeout


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("46", "Left: 12 + 34.\nAnswer: 46"),
        ("46", "The answer is 46 apples."),
        ("46", "So there are \\boxed{46.0} left."),
        ("46", "**Answer:** 46"),
        ("1/2", "\\boxed{0.5}"),
        ("0.5", "\\boxed{\\dfrac12}"),
        ("7/2", "\\boxed{3\\frac{1}{2}}"),
        ("1/3", "0.333333"),
        ("3.14", "\\boxed{3,14}"),
        ("1000000", "1,000,000"),
        ("5000000", "5 million"),
        ("100", "\\boxed{10^2}"),
        ("1.5e-3", "0.0015"),
        ("90", "90^\\circ"),
        ("10\\%", "0.1"),
        ("10", "10%"),
        ("5 cm", "5 centimeters"),
        ("2\\pi", "6.283185307"),
        ("\\sqrt{2}", "\\boxed{sqrt(2)}"),
        ("\\sqrt{8}", "\\boxed{2\\sqrt{2}}"),
        ("\\frac{\\sqrt{3}}{3}", "\\boxed{1/\\sqrt{3}}"),
        ("x^2+2x+1", "\\boxed{(x+1)^2}"),
        ("\\frac{n(n+1)}{2}", "\\boxed{\\frac{n^2+n}{2}}"),
        ("(-1)^n", "\\boxed{\\cos(\\pi n)}"),
        ("\\ln 2", "\\boxed{\\log(2)}"),
        ("3+4i", "\\boxed{4i+3}"),
        ("i", "\\boxed{\\sqrt{-1}}"),
        ("\\binom{5}{2}", "10"),
        ("\\int_0^1 x dx", "\\frac12"),
        ("\\sum_{k=1}^{10} k", "55"),
        ("\\lim_{x\\to 0} \\frac{\\sin(2x)}{x}", "2"),
        ("5", "x = 5"),
        ("x = 5", "5"),
        ("y = 2x + 1", "2x+1"),
        ("2x+4y-3=0", "$y = -\\frac{1}{2}x + \\frac{3}{4}$"),
        ("\\{1, 2\\}", "\\boxed{2, 1}"),
        ("1, 2", "\\boxed{1} and \\boxed{2}"),
        ("\\pm 2", "2 or -2"),
        ("(1, 2)", "\\boxed{(1,2)}"),
        ("[1,2)", "\\boxed{[1,2)}"),
        ("1 < x < 2", "(1,2)"),
        ("(-\\infty,1)\\cup(2,\\infty)", "\\boxed{(2,\\infty)\\cup(-\\infty,1)}"),
        ("2:4", "1:2"),
        ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\boxed{\\begin{bmatrix}1 & 2\\\\ 3 & 4\\end{bmatrix}}"),
        ("Tuesday", "\\boxed{\\text{tuesday}}"),
        ("２", "\\boxed{2}"),
        ("x²", "\\boxed{x^2}"),
        ("2ab", "\\boxed{2ba}"),
        ("46", "46 cats"),
        ("5000000", "5 million dollars"),
        ("5 cm^2", "5\\text{ cm}^2"),
        ("10", "10 s"),
        ("\\text{(C)}", "\\boxed{C}"),
        ("C", "\\boxed{\\text{(C)}}"),
        ("5", "\\boxed{\\text{5}}"),
        ("3, \\pm 2", "-2, 2, 3"),
        ("1 \\pm \\sqrt{2}", "1-\\sqrt2, 1+\\sqrt2"),
        ("\\sqrt[3]{-8}", "-2"),
        ("27^{2/3}", "9"),
        ("a^2b", "\\boxed{ba^2}"),
    ],
)
def test_equal_answers_are_equal(gold: str, answer: str, score: Any, said: Any) -> None:
    verdict = score(Math, {"expected_answer": gold}, said(answer))
    assert verdict.reward == 1.0, verdict.reason
    assert verdict.reason is None


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("1000000", "1000001"),
        ("1e-7", "2e-7"),
        ("1/3", "0.33"),
        ("5", "5.0000001"),
        ("12345.678", "12345"),
        ("5", "\\boxed{25}"),
        ("5", "-5"),
        ("5 km", "5 m"),
        ("x^2+2x+1", "\\boxed{(x+1)^3}"),
        ("|x|", "\\boxed{x}"),
        ("\\pi(R^2-r^2)", "0"),
        ("x = 5", "y = 5"),
        ("[1,2)", "\\boxed{[1,2]}"),
        ("(1,2,3)", "(1,3,2)"),
        ("\\{1,2\\}", "1,2,3"),
        ("\\{1,2,3\\}", "1,2"),
        ("2", "\\boxed{1, 2}"),
        ("1:2", "2:1"),
        ("even", "odd"),
        ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\boxed{\\begin{pmatrix}1 & 2\\\\ 3 & 5\\end{pmatrix}}"),
        ("x > 2", "x \\ge 2"),
        ("a + b", "a - b"),
        ("2ab", "2ac"),
        ("2ab", "2"),
        ("2", "\\boxed{2x}"),
        ("\\sqrt{2}", "1.41"),
        ("C", "D"),
        ("7", "I think it is seven"),
        ("7", ""),
    ],
)
def test_other_answers_are_wrong_and_say_why(gold: str, answer: str, score: Any, said: Any) -> None:
    verdict = score(Math, {"expected_answer": gold}, said(answer))
    assert verdict.reward == 0.0
    assert verdict.reason


@pytest.mark.parametrize(
    "answer",
    [
        "\\boxed{9^{9^{9^9}}}",
        "\\boxed{9^9^9^9}",
        "\\boxed{10^{10^{10}}}",
        "\\boxed{99999999!}",
        "\\boxed{x^{999999999}}",
        "\\boxed{" + "(" * 500 + "7" + ")" * 500 + "}",
        "\\boxed{" + "\\sqrt{" * 300 + "7" + "}" * 301,
        "\\boxed{" + "1+" * 5000 + "1}",
        "\\boxed{" + "-" * 5000 + "7}",
        "\\boxed{" + "9" * 1999 + "}",
    ],
)
def test_bombs_are_wrong_at_once(answer: str, score: Any, said: Any) -> None:
    verdict = score(Math, {"expected_answer": "7"}, said(answer))
    assert verdict.reward == 0.0
    assert verdict.reason


def test_what_cannot_be_decided_in_time_is_an_error_and_not_a_zero(score: Any, said: Any) -> None:
    answer = said("\\boxed{\\int_0^{\\pi} \\ln(\\sin(x)) \\sin(x^{x^x}) dx}")
    with pytest.raises(VerifierTimeout) as caught:
        score(Math, {"expected_answer": "x"}, answer, {"timeout_s": 1.0})
    assert caught.value.failure == "verifier_timeout"


@pytest.mark.parametrize(
    ("text", "strict", "answer", "lenient"),
    [
        (r"first \boxed{1}, then \boxed{2}", "2", "2", "2"),
        (r"\boxed{1} or \boxed{2}", "1, 2", "1, 2", "1, 2"),
        (r"\boxed{840} again \boxed{ 840 }", "840", "840", "840"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}", r"\frac{1}{\sqrt{2}}", r"\frac{1}{\sqrt{2}}"),
        ("The answer is $\\frac12$, as shown.", None, "\\frac12", "\\frac12"),
        ("Answer: 25, because it is odd.", None, "25", "25"),
        ("Final Answer:\n\n-3", None, "-3", "-3"),
        ("10%", None, "10%", "10%"),
        ("We add them and get 12, then 46 in total here.", None, None, "46"),
        ("\\boxed{unfinished", None, "\\boxed{unfinished", "\\boxed{unfinished"),
        ("", None, None, None),
    ],
)
def test_extraction(text: str, strict: str | None, answer: str | None, lenient: str | None) -> None:
    assert extract(text, "boxed") == strict
    assert extract(text, "answer") == answer
    assert extract(text, "lenient") == lenient


def test_the_lenient_twin_finds_an_answer_without_its_phrase(score: Any, said: Any) -> None:
    evidence = said("We add the two numbers of apples and that makes 46 in all.")
    assert score(Math, {"expected_answer": 46}, evidence).reward == 0.0
    lenient = Math().lenient()
    assert lenient is not None
    assert score(Math, {"expected_answer": 46}, evidence, lenient.model_dump()).reward == 1.0
    assert Math(lenient).lenient() is None


def test_numbers_are_exact() -> None:
    assert agree("0.1", "1/10") is True
    assert agree("123456789012345678901234567890", "123456789012345678901234567891") is False
    assert agree("2\\sqrt{2}", "2.828") is False
    assert agree("1/0", "5") is None


def test_a_row_without_an_answer_is_refused() -> None:
    for row in ({}, {"expected_answer": ""}, {"expected_answer": None}, {"expected_answer": True}):
        with pytest.raises(ValidationError):
            MathTask.model_validate(row)
