"""No model text raises out of a verifier, and none holds it up."""

import gc
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from gymflow.verifiers._arithmetic import TooLarge
from gymflow.verifiers._choices import committed
from gymflow.verifiers._latex import normalize
from gymflow.verifiers._numbers import agree
from gymflow.verifiers._units import clean
from gymflow.verifiers.exact import Exact
from gymflow.verifiers.json_schema import JsonSchema
from gymflow.verifiers.math import Math, extract
from gymflow.verifiers.mcqa import Mcqa
from gymflow.verifiers.tool_calls import ToolCalls
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymflow.verifiers import Evidence, VerifierError

FRAGMENTS = st.sampled_from(
    [
        *(
            "\\boxed{",
            "}",
            "{",
            "\\frac{1}{2}",
            "\\frac",
            "\\sqrt",
            "\\sqrt[3]",
            "\\text{or}",
            "\\pm",
            "\\ldots",
            "\\begin{pmatrix}",
        ),
        *(
            "\\end{pmatrix}",
            "&",
            "\\\\",
            "$",
            "\\(",
            "\\)",
            "answer is ",
            "Answer: ",
            "the answer",
            "choose ",
            " correct",
            "A",
            "(B)",
        ),
        *(
            " or ",
            ", ",
            "^",
            "_",
            "**",
            "(",
            ")",
            "[",
            "]",
            "<answer>",
            "</answer>",
            "%",
            "½",
            "²",
            "−",
            "１",
            "∞",
            "\ud800",
            "\x00",
        ),
        *(
            "x",
            "n",
            "12",
            "1,000",
            "3.14",
            "1e5",
            "=",
            "<",
            "!",
            ":",
            ";",
            "\n",
            " ",
            "'",
            '"',
            "```json\n",
            "```",
            '{"a": 1}',
            "\u202e",
        ),
    ]
)
TEXT = st.one_of(st.text(max_size=200), st.lists(FRAGMENTS, max_size=25).map("".join))
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
OPTIONS = {"A": "one", "B": "two or three", "C": "\\frac{1}{2}"}


@QUICK
@given(TEXT)
def test_readers_take_any_text(text: str) -> None:
    assert committed(text, OPTIONS, lenient=True).letter in (None, *OPTIONS)
    for extraction in ("boxed", "answer", "lenient"):
        answer = extract(text, extraction)  # type: ignore[arg-type]
        assert answer is None or isinstance(answer, str)
    normalize(text)
    try:
        assert agree(clean(text), "1") in (True, False, None)
        assert agree("1", clean(text)) in (True, False, None)
    except TooLarge:
        pass


@QUICK
@given(TEXT)
def test_verifiers_give_a_verdict_on_any_text(score: Any, said: Any, text: str) -> None:
    evidence = said(text)
    for verifier, row, parameters in (
        (Exact, {"expected_answer": "x"}, {"extraction": "any", "match": "contains"}),
        (Mcqa, {"options": list(OPTIONS.values()), "expected_answer": "B"}, None),
        (JsonSchema, {"schema": {"type": "object"}, "expected_values": {"a": 2}}, {"extraction": "anywhere"}),
        (ToolCalls, {"expected_calls": [{"name": "f"}]}, None),
    ):
        verdict = score(verifier, row, evidence, parameters)
        assert verdict.reward in (0.0, 1.0)
        assert (verdict.reward == 1.0) == (verdict.reason is None)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=TEXT,
    gold=st.sampled_from(["5", "x^2+1", "\\{1,2\\}", "(1, 2]", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "y=2x", "even"]),
)
def test_math_decides_or_says_that_it_cannot(score: Any, said: Any, text: str, gold: str) -> None:
    begun = time.monotonic()
    try:
        verdict = score(
            Math, {"expected_answer": gold}, said(f"Answer: {text}"), {"extraction": "lenient", "timeout_s": 5.0}
        )
        assert verdict.reward in (0.0, 1.0)
    except VerifierError:
        pass
    assert time.monotonic() - begun < 30


@QUICK
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.text(max_size=5), st.just("f")),
            st.one_of(
                st.none(),
                st.text(max_size=20),
                st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5)).map(json.dumps),
            ),
        ),
        max_size=5,
    )
)
def test_any_calls_can_be_compared(score: Any, calls: list[tuple[Any, Any]]) -> None:
    output = [{"type": "function_call", "name": name, "arguments": arguments} for name, arguments in calls]
    row = {"expected_calls": [{"name": "f", "arguments": {"a": 1}}, {"name": "f", "arguments": {"b": "x"}}]}
    verdict = score(ToolCalls, row, Evidence(response={"output": output}), {"credit": "arguments"})
    assert 0.0 <= verdict.reward <= 1.0


LONG = [
    "\\boxed{" * 20_000,
    "\\boxed{" * 20_000 + "}" * 20_000,
    "answer is " * 20_000,
    "answer" + " " * 100_000,
    "the answer is A or " * 10_000,
    "(" * 100_000,
    "Answer: " + "1," * 50_000,
    "Answer: " + "-" * 100_000,
    "[" * 100_000 + "]" * 100_000,
    "```json\n" * 20_000,
    "{" * 100_000,
    '{"a":' * 50_000,
    "<answer>" * 20_000,
    " is correct" * 20_000,
    "$" * 100_001,
    "\\text{" * 20_000,
    "a " * 100_000,
    "\u200b½²" * 30_000,
    "*_`" * 50_000,
    "choose the best option " * 10_000,
    "Answer: " + "x" * 100_000,
    "1 000" * 40_000,
]


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Of garbage: it walks all that other tests of this process hold, in the time of whoever allocates."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:12].strip() or "blank")
def test_long_texts_are_read_in_time(text: str, score: Any, said: Any) -> None:
    for verifier, row, parameters in (
        (Exact, {"expected_answer": "x"}, {"extraction": "any", "match": "contains"}),
        (Mcqa, {"options": list(OPTIONS.values()), "expected_answer": "B"}, {"mode": "lenient"}),
        (Mcqa, {"options": list(OPTIONS.values()), "expected_answer": "B"}, {"mode": "lenient_boxed"}),
        (Mcqa, {"options": list(OPTIONS.values()), "expected_answer": "B"}, {"mode": "lenient_answer_colon"}),
        (JsonSchema, {"schema": {"type": "object"}}, {"extraction": "anywhere"}),
        (Math, {"expected_answer": "5"}, {"extraction": "lenient", "timeout_s": 5.0}),
        (Math, {"expected_answer": "x+1"}, {"extraction": "lenient", "timeout_s": 5.0}),
    ):
        begun = time.thread_time()
        verdict = score(verifier, row, said(text), parameters)
        assert time.thread_time() - begun < 1.0, verifier  # CPU seconds of this thread; backtracking would take hours
        assert verdict.reward == 0.0
