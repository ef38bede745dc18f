"""`gym sql`: rows for people, for programs, and what there is to ask."""

import csv
import io
import json
from pathlib import Path

import pytest

from gymflow.store import Store, connect
from tests.support.command import Gym

ODD = """
    select 1 as a, 2 as a, 3 as a, null as nothing, 1.5 as half, 2.50::decimal(9, 2) as money, 'nan'::double as nan,
           timestamptz '2026-01-02 03:04:05+00' as at, [1, 2] as list, {'k': 'v'} as struct, map {'m': 1} as map,
           123456789012345678901234567890::hugeint as big, '\\x00ff'::blob as bytes, true as yes,
           E'tab\\there\\x1b[31m' as text
"""


@pytest.fixture
def gym(here: Gym, store: Path) -> Gym:
    Store(store).layout.runs.mkdir(parents=True)
    return here


def test_rows_are_tab_separated_lines_below_the_names_in_a_pipe(gym: Gym) -> None:
    ended = gym("sql", "select 'a b' as x, 2 as y union all select 'c', null order by 1")
    assert (ended.code, ended.out) == (0, "x\ty\na b\t2\nc\t\n")


def test_json_is_a_list_of_row_objects(gym: Gym) -> None:
    assert gym("sql", "select 1 as one where false", "--json").json == []
    [row] = json.loads(gym("sql", ODD, "--json").out)
    assert [row["a"], row["a_1"], row["a_2"]] == [1, 2, 3]
    assert (row["nothing"], row["half"], row["money"], row["nan"]) == (None, 1.5, 2.5, None)
    assert row["at"].startswith("2026-01-02T") and row["list"] == [1, 2] and row["struct"] == {"k": "v"}
    assert row["map"] == {"m": 1} and row["big"] == 123456789012345678901234567890 and row["yes"] is True
    assert row["text"] == "tab\there\x1b[31m"


def test_csv_has_a_header_and_reads_back(gym: Gym) -> None:
    ended = gym("sql", "select 'a,\"b' as x, null as y, 0.1 as z", "--csv")
    assert list(csv.reader(io.StringIO(ended.out))) == [["x", "y", "z"], ['a,"b', "", "0.1"]]


def test_every_view_and_column_is_documented(gym: Gym, store: Path) -> None:
    with connect(store) as connection:
        found = connection.execute(
            "select table_name, column_name from information_schema.columns where not starts_with(table_name, '_')"
        ).fetchall()
    documented = {
        (view["name"], column["name"]): column["description"]
        for view in gym("sql", "--schema", "--json").json
        for column in view["columns"]
    }
    assert set(documented) == {pair for pair in found if not pair[0].startswith("_")}
    assert all(documented.values())
    assert ["outcomes", "reward", "DOUBLE"] in [
        line.split("\t")[:3] for line in gym("sql", "--schema").out.splitlines()
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["select nothing_like_this from runs"], "nothing_like_this"),
        (["select * from rollout"], 'Did you mean "rollouts"'),
        (["selec 1"], "syntax error"),
        (["select 1; select 2"], "one statement at a time"),
        (["delete from runs"], "only statements that read"),
        (["select 'x'::int"], "Could not convert"),
        (["select 1", "--csv", "--json"], "not both"),
        ([], "give either a query"),
        (["select 1", "--schema"], "give either a query"),
        (["select 1", "--store", "/nowhere/at/all"], "there is no store"),
    ],
)
def test_a_mistake_is_one_message(gym: Gym, arguments: list[str], message: str) -> None:
    ended = gym("sql", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err
