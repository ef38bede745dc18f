"""The list of runs says the same score and error as the scorecard."""

import math
from pathlib import Path

import numpy as np
import pytest

from gymflow.metrics.scorecard import scorecard
from gymflow.metrics.summaries import run_summaries
from gymflow.store import Store
from tests.support.synthetic import write_run

NAN, INF = math.nan, math.inf
REWARDS = [[1, 1], [1, 1], [0, 0], [0, 1], [NAN, INF], [1, 0], [0, NAN]]
CLUSTERS = ["a", "a", "b", "b", "b", None, None]


def test_the_error_is_clustered_like_the_scorecards(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "plain", REWARDS)
    write_run(store, "clustered", REWARDS, clusters=CLUSTERS)
    found = {one.run_id: one.score for one in run_summaries(store)}
    for run_id, groups in (("plain", 6), ("clustered", 4)):
        [line] = scorecard(store, run_id).lines
        score = found[run_id]
        assert score is not None and score.groups == groups
        assert score.score == pytest.approx(line.score)
        assert score.standard_error == pytest.approx(line.standard_error)
    assert found["plain"] != found["clustered"]


def test_a_single_cluster_has_no_error_and_nothing_scored_no_score(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "one", np.eye(3), clusters=["a"] * 3)
    write_run(store, "none", np.full((2, 2), NAN))
    found = {one.run_id: one.score for one in run_summaries(store)}
    assert {name: (score.score, score.standard_error, score.groups) for name, score in found.items() if score} == {
        "none": (None, None, 0),
        "one": (pytest.approx(1 / 3), None, 1),
    }
