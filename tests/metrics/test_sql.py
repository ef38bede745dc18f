"""The macros and views that anyone can use in SQL agree with the functions that reports are made of."""

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from gymflow.metrics.estimators import pass_at_k, pass_hat_k
from gymflow.metrics.intervals import wilson
from gymflow.store import Store, connect, query
from tests.support.synthetic import write_run


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("n", "c", "k"), [(10, 3, 1), (10, 3, 5), (10, 0, 5), (10, 10, 5), (4, 1, 4), (200, 7, 100), (2, 0, 5), (0, 0, 1)]
)
def test_pass_macros_are_the_estimators(connection: duckdb.DuckDBPyConnection, n: int, c: int, k: int) -> None:
    found = connection.execute("select pass_at_k(?, ?, ?), pass_hat_k(?, ?, ?)", [n, c, k] * 2).fetchall()[0]
    assert found == pytest.approx((pass_at_k(n, c, k), pass_hat_k(n, c, k)))


def test_pass_macros_refuse_what_is_no_count(connection: duckdb.DuckDBPyConnection) -> None:
    for call in ("pass_at_k(2, 3, 1)", "pass_at_k(2, 1, 0)", "pass_hat_k(2, -1, 1)"):
        with pytest.raises(duckdb.Error, match="0 <= c <= n and k >= 1"):
            connection.execute(f"select {call}").fetchall()


@pytest.mark.parametrize(("c", "n"), [(8, 10), (0, 10), (10, 10), (1, 1), (333, 1000)])
def test_wilson_macros_are_the_function(connection: duckdb.DuckDBPyConnection, c: int, n: int) -> None:
    found = connection.execute("select wilson_low(?, ?), wilson_high(?, ?)", [c, n, c, n]).fetchall()[0]
    assert found == pytest.approx(wilson(c, n), abs=1e-12)


def test_wilson_of_no_trial_is_null(connection: duckdb.DuckDBPyConnection) -> None:
    for c, n in ((0, 0), (11, 10), (-1, 10)):
        assert connection.execute("select wilson_low(?, ?), wilson_high(?, ?)", [c, n, c, n]).fetchall() == [
            (None, None)
        ]


def test_macros_work_where_nothing_can_be_opened(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "r", [[1, 0, 1, math.nan], [0, 0, 0, 0]])
    sql = "select task_id, reward, scored, planned, pass_at_k(scored, passed, 2) as pass2 from task_scores order by task_id"
    assert query(tmp_path, sql).objects() == [
        {"task_id": "q0", "reward": pytest.approx(2 / 3), "scored": 3, "planned": 4, "pass2": 1.0},
        {"task_id": "q1", "reward": 0.0, "scored": 4, "planned": 4, "pass2": 0.0},
    ]


def test_one_verdict_set_has_no_flips(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "r", np.eye(3))
    assert query(tmp_path, "select * from flips").objects() == []
