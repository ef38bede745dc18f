"""Gates: what they say, what holds, and what is undefined does not hold."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gymflow.analysis.compare import compare, parse_gate, read_gates
from gymflow.errors import InputError
from gymflow.store import Store

Stored = Callable[..., str]


@pytest.fixture
def runs(stored: Stored) -> None:
    tags = [["easy"]] * 10 + [["hard"]] * 10
    stored("b", np.array([[1.0]] * 10 + [[0.0]] * 10), tags=tags, cost_usd=0.02)
    stored("a", np.array([[1.0]] * 9 + [[0.0]] * 9 + [[1.0]] * 2), tags=tags, cost_usd=0.03)


@pytest.mark.parametrize(
    ("gate", "observed", "holds"),
    [
        ("score >= -0.01", 0.05, True),
        ("score>0.05", 0.05, False),
        ("absolute score >= 0.5", 0.55, True),
        ("absolute pass_rate >= 60 %", 55.0, False),
        ("score[tag=hard] >= 0.1", 0.2, True),
        ("score[tag=easy] >= -5%", -10.0, False),
        ("score[environment=mcqa] >= 0", 0.05, True),
        ("cost_usd <= +10%", 50.0, False),
        ("absolute cost_usd < 0.05", 0.03, True),
        ("cost_usd <= 1e-2", 0.01, True),
        ("lost <= 1", 1.0, True),
        ("coverage >= 99%", 100.0, True),
        ("absolute score[tag=hard] > 0.2", 0.2, False),
        ("gained >= 3", 2.0, False),
        ("score[tag=none] >= 0", None, False),
    ],
)
def test_gates_hold_or_do_not(place: Store, runs: None, gate: str, observed: float | None, holds: bool) -> None:
    [found] = compare(place, "b", ["a"], gates=[parse_gate(gate)]).gates
    assert found.observed == (None if observed is None else pytest.approx(observed))
    assert found.passed is holds
    assert (found.reason is None) == (observed is not None)


def test_absolute_gates_look_at_the_candidate_alone(place: Store, stored: Stored) -> None:
    stored("b", np.ones((2, 1)))
    stored("a", np.array([[1.0], [1.0], [0.0], [0.0]]))
    report = compare(place, "b", ["a"], gates=[parse_gate("absolute score >= 0.9")])
    assert report.gates[0].observed == 0.5 and not report.gates[0].passed


def test_what_few_pairs_show_holds_no_gate(place: Store, stored: Stored) -> None:
    stored("b", np.ones((10, 1)))
    stored("a", np.array([[1.0]] * 4 + [[np.nan]] * 6))
    conditions = ("score >= -0.01", "lost <= 0", "coverage >= 50%", "coverage >= 0.4")
    report = compare(place, "b", ["a"], gates=[parse_gate(one) for one in conditions])
    assert [gate.passed for gate in report.gates] == [False, False, False, True]
    assert report.gates[0].reason == "only 4 of 10 common tasks are scored on both sides"
    assert [gate.observed for gate in report.gates[2:]] == [40.0, 0.4]


def test_ends_of_the_interval_make_a_test_of_non_inferiority(place: Store, runs: None) -> None:
    report = compare(place, "b", ["a"], gates=[parse_gate("score.low >= -0.2"), parse_gate("score.high < 0")])
    interval = report.candidates[0].score.interval
    assert interval is not None
    assert [gate.observed for gate in report.gates] == [interval.low, interval.high]
    assert [gate.passed for gate in report.gates] == [True, False]


def test_what_is_undefined_does_not_hold(place: Store, stored: Stored) -> None:
    stored("b", np.zeros((3, 1)))
    stored("a", np.array([[0.0], [0.0], [1.0]]))
    report = compare(place, "b", ["a"], gates=[parse_gate("cost_usd <= 1"), parse_gate("score >= 1%")])
    assert [gate.passed for gate in report.gates] == [False, False]
    assert [gate.reason for gate in report.gates] == ["no task has it on both sides", "the base is 0"]


def test_what_costs_nothing_on_both_sides_has_not_changed(place: Store, stored: Stored) -> None:
    stored("b", np.zeros((3, 1)), cost_usd=0.0)
    stored("a", np.zeros((3, 1)), cost_usd=0.0)
    report = compare(place, "b", ["a"], gates=[parse_gate("cost_usd <= +10%"), parse_gate("cost_usd <= -10%")])
    assert [(gate.passed, gate.observed) for gate in report.gates] == [(True, 0.0), (False, 0.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score", "METRIC OPERATOR NUMBER"),
        ("score >= high", "METRIC OPERATOR NUMBER"),
        ("score == 1", "METRIC OPERATOR NUMBER"),
        ("scroe >= 0", "did you mean score"),
        ("score.mid >= 0", "ends .low and .high"),
        ("absolute score.low >= 0", "leave out absolute"),
        ("cost_usd[tag=hard] <= 1", "only score and pass_rate"),
        ("lost <= 1%", "stands alone"),
    ],
)
def test_a_gate_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_gate(text)


@pytest.mark.parametrize("head", ["", "gates:\n"])
def test_a_file_has_a_list_of_gates(tmp_path: Path, head: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(head + '- "score >= -0.01"\n- cost_usd <= +10%\n')
    assert [gate.text for gate in read_gates(path)] == ["score >= -0.01", "cost_usd <= +10%"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gates: 3", "write a list"),
        ("- 3", "gates.yaml:1: 3 is no condition"),
        ("gates:\n  - score >= 0\n  - nothing", "gates.yaml:3 'nothing'"),
        ("score: 1", "write a list"),
    ],
)
def test_a_file_that_cannot_be_read_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_gates(path)
