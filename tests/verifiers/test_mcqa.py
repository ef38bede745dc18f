"""Which option a text commits to."""

from typing import Any

import pytest
from gymflow.verifiers._choices import committed
from gymflow.verifiers.mcqa import Mcqa, McqaTask
from pydantic import ValidationError

OPTIONS = {"A": "Paris", "B": "London", "C": "a car", "D": "H2O"}
ROW = {"options": [{letter: text} for letter, text in OPTIONS.items()], "expected_answer": "C"}


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("C", "C"),
        ("(C)", "C"),
        ("**C**", "C"),
        ("C.", "C"),
        ("C) a car", "C"),
        ("Let me think.\n\nB. London", "B"),
        ("The answer is B because a car moves.", "B"),
        ("The answer is **D**.", "D"),
        ("the answer is \\(C\\)", "C"),
        ("The answer is:\n\nB", "B"),
        ("**Answer:** C", "C"),
        ("Final answer: (A) Paris", "A"),
        ("The correct answer is **B: London**", "B"),
        ("The right answer would be D", "D"),
        ("The best choice is B.", "B"),
        ("My final answer is (D)", "D"),
        ("\\boxed{D}", "D"),
        ("$\\boxed{\\text{(C)}}$", "C"),
        ("So \\text{(C)}", "C"),
        ("\\boxed{\\text{B: London}}", "B"),
        ("Answer: \\boxed{C}", "C"),
        ("<choice>H2O</choice>", "D"),
        ("<answer>C</answer>", "C"),
        ("Answer: Paris", "A"),
        ("The answer is a car.", "C"),
        ("Paris", "A"),
        ("I'd go with C.", "C"),
        ("I choose (b).", "B"),
        ("Option C is correct.", "C"),
        ("Therefore (D) is the best answer.", "D"),
        ("答案：Ｂ", "B"),
        ("答案是【Ｃ】", "C"),
        ("Die Antwort ist C.", "C"),
        ("La réponse est B.", "B"),
        ("综上所述，故选：C。", "C"),
        ("The answer is b) London", "B"),
        ("The answer is a)", "A"),
        ('{"answer": "C"}', "C"),
        ("I am torn between A and B, but the answer is probably B.", "B"),
        ("$$\\boxed{\\text{Option C}}$$", "C"),
        ("\\boxed{\\mathrm{C}}", "C"),
        ("Answer\nC", "C"),
    ],
)
def test_a_commitment_is_read(text: str, letter: str) -> None:
    assert committed(text, OPTIONS).letter == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The answer is A. Wait, no, the answer is B.", "B"),
        ("\\boxed{A}\n\nLet me check again.\n\n\\boxed{B}", "B"),
        ("C is not correct. A is the right answer.", "A"),
        ("Answer: C\n\nExplanation: A is wrong because London is far.", "C"),
        ("If the answer is A, then nothing holds. The answer is B", "B"),
        ("The wrong answer is A. The correct answer is D.", "D"),
        ("Option A is incorrect. Option B is incorrect. Hence the correct answer is option C", "C"),
        ("The answer is B, and A is wrong", "B"),
        ("Answer: Let's think. ... Answer: D", "D"),
        ("A, B, and D are incorrect. C is correct.", "C"),
        ("The answer is B and not C", "B"),
        ("Answer: C\n\nWhy not the others:\nA) Paris is no vehicle.\nB) London is wrong.", "C"),
        ("Answer: B\n\nA car moves.", "B"),
    ],
)
def test_the_last_commitment_that_is_not_negated_counts(text: str, letter: str) -> None:
    assert committed(text, OPTIONS).letter == letter


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The answer is A or B", "both"),
        ("either A or B.", "no option"),
        ("The answer is either A or B.", "both"),
        ("\\boxed{A, B}", "both"),
        ("\\boxed{C} or \\boxed{D}", "both"),
        ("Answer: A/B/C/D", "both"),
        ("Answer: (B) and (C)", "both"),
        ("Answer: F", "none of the options"),
        ("\\boxed{Z}", "none of the options"),
        ("The answer is not A.", "no option"),
        ("It's A car that I saw.", "no option"),
        ("One option is A.", "no option"),
        ("I cannot say.", "no option"),
        ("Answer: I cannot say", "no option"),
        ("The capital is Paris.", "no option"),
        ("", "no option"),
    ],
)
def test_hedges_negations_and_prose_are_no_answer(text: str, reason: str) -> None:
    found = committed(text, OPTIONS)
    assert found.letter is None
    assert reason in (found.reason or "")


@pytest.mark.parametrize(
    ("mode", "text", "letter"),
    [
        ("strict_single_letter_boxed", r"\boxed{C} ... \boxed{B}", "B"),
        ("strict_single_letter_boxed", r"\boxed{\text{B: London}}", "B"),
        ("strict_single_letter_boxed", r"Final: \boxed{ [C] }", "C"),
        ("strict_single_letter_boxed", r"\boxed{A car}", None),
        ("strict_single_letter_boxed", "The answer is C", None),
        ("lenient_boxed", r"\boxed{London}", "B"),
        ("lenient_boxed", r"\boxed{London or Paris}", None),
        ("lenient_answer_colon", "Answer: B", "B"),
        ("lenient_answer_colon", "answer: london", "B"),
        ("lenient_answer_colon", r"\boxed{B}", None),
        ("lenient", "Looking at it, (B) seems plausible to me here, I guess", "B"),
        ("lenient", "The capital is Paris.", "A"),
        ("anchored", "The capital is Paris.", None),
    ],
)
def test_grading_modes(mode: str, text: str, letter: str | None, score: Any, said: Any) -> None:
    assert score(Mcqa, ROW, said(text), {"mode": mode}).extracted_answer == letter
    if mode not in ("anchored", "lenient"):
        assert score(Mcqa, ROW | {"grading_mode": mode}, said(text)).extracted_answer == letter


def test_options_may_be_plain_texts_and_go_beyond_d(score: Any, said: Any) -> None:
    row = {"options": [f"planet {number}" for number in range(12)], "expected_answer": "k"}
    assert score(Mcqa, row, said("The answer is K.")).reward == 1.0
    assert score(Mcqa, row, said("The answer is planet 10.")).reward == 1.0
    assert score(Mcqa, row, said("The answer is planet 1.")).extracted_answer == "B"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"options": ["a", "b"], "expected_answer": "C"}, "none of the options"),
        ({"options": [{"A": "x"}, {"A": "y"}], "expected_answer": "A"}, "same letter"),
        ({"options": [{"AB": "x"}, {"C": "y"}], "expected_answer": "C"}, "single letter"),
        ({"options": ["a"], "expected_answer": "A"}, "at least 2"),
        (
            {"options": ["a", "b"], "expected_answer": "A", "template_metadata": {"output_regex": "("}},
            "regular expression",
        ),
    ],
)
def test_faulty_rows_are_found_by_validation(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        McqaTask.model_validate(row)


def test_a_wrong_option_says_so(score: Any, said: Any) -> None:
    verdict = score(Mcqa, ROW, said("The answer is A."))
    assert (verdict.reward, verdict.extracted_answer) == (0.0, "A")
    assert verdict.reason
