"""Matching and assignment are optimal: compared with scipy's."""

from typing import Any

from gymflow.verifiers._assignment import assignment, matching
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import linear_sum_assignment

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@given(shapes.flatmap(lambda shape: arrays.arrays(bool, shape)))
def test_a_matching_is_one_to_one_along_edges_and_as_large_as_can_be(edges: Any) -> None:
    columns = matching(edges.tolist())
    taken = [column for column in columns if column is not None]
    assert len(set(taken)) == len(taken)
    assert all(edges[row, column] for row, column in enumerate(columns) if column is not None)
    rows, best = linear_sum_assignment(edges.astype(float), maximize=True)
    assert len(taken) == edges[rows, best].sum()


@given(shapes.flatmap(lambda shape: arrays.arrays(float, shape, elements=st.integers(0, 8).map(lambda n: n / 8))))
def test_an_assignment_has_the_largest_total(scores: Any) -> None:
    columns = assignment(scores.tolist())
    taken = [column for column in columns if column is not None]
    assert len(set(taken)) == len(taken) == min(scores.shape)
    rows, best = linear_sum_assignment(scores, maximize=True)
    total = sum(scores[row, column] for row, column in enumerate(columns) if column is not None)
    assert abs(total - scores[rows, best].sum()) < 1e-9
