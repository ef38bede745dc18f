"""The public faults in statistics: each gets the value that its report asks for."""

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymflow.contracts.profile import ProfileLine
from gymflow.metrics.estimators import majority_at_k, pass_at_k
from gymflow.metrics.intervals import clustered_error, mean_estimate, wilson
from gymflow.metrics.profile import profile
from gymflow.metrics.quality import Options
from gymflow.metrics.scorecard import scorecard
from gymflow.store import Store
from tests.support.synthetic import write_run

Faults = dict[str, dict[str, Any]]


def line_of(folder: Path, rewards: Any, **options: Any) -> ProfileLine:
    store = Store(folder)
    write_run(store, "r", rewards, **options)
    [line] = profile(store, "r").lines
    return line


def at(metric: list[Any], k: int) -> Any:
    [found] = [one.estimate for one in metric if one.k == k]
    return found


def test_st_passk_basic(faults: Faults) -> None:
    case = faults["st-passk-basic"]
    found = [pass_at_k(n, c, k) for n, c, k in case["input"]["n_c_k"]]
    assert found == pytest.approx(case["expected"]["pass_at_k"], abs=1e-10)


def test_st_passk_k_gt_n(faults: Faults, tmp_path: Path) -> None:
    given = faults["st-passk-k-gt-n"]["input"]
    assert pass_at_k(given["n"], given["c"], given["k"]) is None
    store = Store(tmp_path)
    write_run(store, "r", np.zeros((3, given["n"])))
    found = at(profile(store, "r", options=Options(k=[given["k"]])).lines[0].pass_at, given["k"])
    assert (found.value, found.reason) == (None, "no task has 5 scored rollouts (the most is 2)")


def test_st_passk_problem_as_sample(faults: Faults, tmp_path: Path) -> None:
    given = faults["st-passk-problem-as-sample"]["input"]
    rewards = np.zeros((given["problems"], given["samples_each"]))
    rewards[: given["solved"]] = 1.0
    line = line_of(tmp_path, rewards)
    assert at(line.pass_at, 1).value == pytest.approx(0.3049, abs=5e-5)
    assert [one.k for one in line.pass_at] == [1]


def test_st_se(faults: Faults) -> None:
    case = faults["st-se"]
    found = mean_estimate(np.array(case["input"]["scores"], float), bounds=(0.0, 1.0))
    assert found.value == pytest.approx(case["expected"]["mean"])
    assert found.standard_error == pytest.approx(case["expected"]["se_sample_ddof1"], abs=1e-10)


def test_st_clustered(faults: Faults) -> None:
    case = faults["st-clustered"]
    scores, clusters = np.array(case["input"]["scores"], float), np.array(case["input"]["cluster"])
    found = clustered_error(scores, clusters)
    assert found.standard_error == pytest.approx(case["expected"]["se_with_G_over_Gminus1"], abs=1e-10)
    assert clustered_error(scores, np.zeros(len(scores))).standard_error is None


def test_st_wilson(faults: Faults) -> None:
    case = faults["st-wilson"]
    for (c, n), expected in zip(case["input"]["c_n"], case["expected"]["wilson95"], strict=True):
        assert wilson(c, n) == pytest.approx(expected, abs=1e-6)


def test_st_empty(faults: Faults, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mean_estimate(np.array(faults["st-empty"]["input"]["scores"], float))
        line = line_of(tmp_path, [[math.nan, math.inf]])
    assert (found.value, found.standard_error, found.tasks) == (None, None, 0)
    assert (line.score.value, line.score.tasks, line.pass_at[0].estimate.value) == (None, 0, None)
    assert line.score.reason == "there is no scored task"
    assert (line.failed, line.missing) == (1, 1)
    assert "NaN" not in json.dumps(line.model_dump(mode="json"), allow_nan=False)


def test_st_majority_tie(faults: Faults) -> None:
    given = faults["st-majority-tie"]["input"]
    votes = tuple((given["answers"].count(answer), float(answer == given["gold"])) for answer in ("A", "B"))
    assert majority_at_k(votes, 4) == 0.5
    assert majority_at_k(tuple(reversed(votes)), 4) == 0.5


def test_st_no_answer_consistent(faults: Faults, tmp_path: Path) -> None:
    """One rule: no answer is an answer of its own, and whether it is right the verdict says, as for every other metric."""
    task = faults["st-no-answer-consistent"]["input"]["task"]
    # Another task gives answers, so that majority@k is defined for the run.
    rewards = [task["rewards"], [0.0, 0.0]]
    answers = [value for pair in zip(task["extracted"], ["B", "B"], strict=True) for value in pair]
    line = line_of(tmp_path, rewards, answers=answers)
    found = {at(metric, 2).value for metric in (line.pass_at, line.majority_at, line.average_of)}
    assert found == {0.5}


def test_unanswered_rollouts_that_fail_are_votes_for_a_wrong_answer(tmp_path: Path) -> None:
    line = line_of(tmp_path, [[1.0, 0.0, 0.0]], answers=["A", None, None])
    assert at(line.majority_at, 3).value == 0.0
    assert line.unanswered == pytest.approx(2 / 3)


def test_st_no_answer_over_100(faults: Faults, tmp_path: Path) -> None:
    case = faults["st-no-answer-over-100"]
    scores = dict.fromkeys(case["input"]["scores"], 0.0)
    line = line_of(tmp_path, [[0.0]], answers=[None], components=[json.dumps(scores)])
    assert line.components.keys() == scores.keys()
    assert line.unanswered == case["expected"]["no_answer_rate"]
    both = line_of(tmp_path / "answered", [[0.0, 0.0]], answers=[None, "A"], components=[json.dumps(scores)] * 2)
    assert both.unanswered == 0.5


def test_st_order_independent(faults: Faults, tmp_path: Path) -> None:
    for number, repeats in enumerate(faults["st-order-independent"]["input"]["repeats"]):
        store = Store(tmp_path / str(number))
        write_run(store, "r", [[math.nan if reward == "NaN" else reward for reward in repeats]])
        [line] = profile(store, "r").lines
        [card] = scorecard(store, "r").lines
        assert (line.score.value, line.rollouts - line.scored) == (1.0, 1)
        assert (card.score, card.rollouts - card.scored) == (1.0, 1)


def test_st_segments_as_episodes(faults: Faults, tmp_path: Path) -> None:
    """A rollout weighs 1, however many segments (model calls, turns) it has: they are rows of other tables."""
    rollouts = faults["st-segments-as-episodes"]["input"]["rollouts"]
    line = line_of(tmp_path, [[rollout["reward"] for rollout in rollouts]], calls=True)
    assert at(line.pass_at, 1).value == faults["st-segments-as-episodes"]["expected"]["pass_at_1"]
