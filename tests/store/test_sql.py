"""SQL from outside reads the store's tables, and reaches nothing else."""

from pathlib import Path
from typing import Any

import pytest

from gymflow.errors import InputError
from gymflow.store import Store, connect, query


@pytest.fixture
async def filled(store: Store, build: Any) -> Store:
    build.run(store, "r", 3)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        await writer.commit(build.record("r", 0), [build.verdict("r", 0)])
        await writer.finish()
        await writer.commit(build.record("r", 1), [build.verdict("r", 1, reward=0.0)])
    return store


async def test_rows_are_objects(filled: Store) -> None:
    result = query(filled.root, "select rollout_id, reward from outcomes where outcome = 'scored' order by 1;")
    assert result.columns == ["rollout_id", "reward"]
    assert result.objects() == [{"rollout_id": "r-0", "reward": 1.0}, {"rollout_id": "r-1", "reward": 0.0}]


@pytest.mark.parametrize(
    "sql",
    [
        "from runs",
        "with x as (select 1 as a) from x",
        "describe rollouts",
        "summarize plan",
        "show tables",
    ],
)
async def test_statements_that_read_are_allowed(filled: Store, sql: str) -> None:
    assert query(filled.root, sql).objects()


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from read_blob('/proc/self/environ')",
        "select * from '/etc/passwd'",
        "from '{secret}'",
        "select * from read_json('{secret}')",
        "select * from read_csv_auto('{secret}')",
        "select * from read_ndjson_objects('{secret}')",
        "select * from sniff_csv('{secret}')",
        "select * from read_parquet('{store}/runs/r/parts/../../../../secret.json')",
        "select * from read_text('{store}/runs/r/run.json')",
        "select * from glob('/etc/*')",
        "select * from glob('{store}/**')",
        "select * from read_csv('https://example.invalid/x.csv')",
        "select * from read_parquet('s3://bucket/x.parquet')",
        "select * from read_csv('/dev/stdin')",
        "select * from query('select * from read_text(''/etc/passwd'')')",
        "select getenv('HOME')",
        "select * from secret_frame",
        "with x as (select 1) select * from x, read_csv('/etc/passwd')",
        "explain analyze select * from read_csv('/etc/passwd')",
        "summarize select * from read_csv('/etc/passwd')",
        "describe select * from read_csv('/etc/passwd')",
        "select * from json_execute_serialized_sql(json_serialize_sql('select * from read_text(''/etc/passwd'')'))",
        "copy (select 1) to '{out}'",
        "copy rollouts to '{out}' (format parquet)",
        "copy (select 1) to '{part}'",
        "copy (select 1) to '{part}' (format parquet, use_tmp_file false)",
        "explain analyze copy (select 1) to '{part}' (format parquet, use_tmp_file false)",
        "with w as (copy (select 1) to '{part}' (format parquet, use_tmp_file false)) select 1",
        "with w as (copy (select 1) to '{out}') select * from w",
        "export database '{out}'",
        "attach '{out}' as stolen",
        "attach 'https://example.invalid/x.db' as remote",
        "install httpfs",
        "load httpfs",
        "install httpfs from 'http://example.invalid'",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "reset enable_external_access",
        "set allowed_directories = ['/']",
        "set memory_limit = '100GB'",
        "set temp_directory = '/tmp'",
        "set global home_directory = '/'",
        "pragma enable_profiling",
        "pragma database_list",
        "pragma version",
        "call pragma_version()",
        "call enable_logging(storage = 'file')",
        "create table t as select 1",
        "create view v as select 1",
        "create macro m() as 1",
        "create secret s (type s3)",
        "drop view rollouts",
        "insert into _runs values (1)",
        "update rollouts set reward = 1",
        "delete from rollouts",
        "begin",
        "checkpoint",
        "vacuum",
        "use memory",
        "prepare p as select 1",
        "select 1; select 2",
        "select 1; copy (select 1) to '{out}'",
        "-- nothing",
        "",
        "selec 1",
    ],
)
async def test_attacks_are_refused_with_one_message(filled: Store, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"key": "sk-secret"}')
    part = next(filled.root.glob("runs/r/parts/rollouts/*.parquet"))
    before = {path: path.read_bytes() for path in filled.root.rglob("*") if path.is_file()}
    text = sql.format(secret=secret, store=filled.root, out=tmp_path / "out", part=part)
    secret_frame = [{"key": "sk-secret"}]
    with pytest.raises(InputError, match=r"^SQL: ") as refused:
        query(filled.root, text).objects()
    assert "sk-secret" not in str(refused.value) and secret_frame
    assert "root:" not in str(refused.value)
    assert not (tmp_path / "out").exists()
    assert {path: path.read_bytes() for path in filled.root.rglob("*") if path.is_file()} == before


async def test_parts_are_not_written_by_a_copy_inside_a_query(filled: Store) -> None:
    """DuckDB takes COPY as the body of a WITH and calls the whole a SELECT."""
    part = next(filled.root.glob("runs/r/parts/rollouts/*.parquet"))
    before = part.read_bytes()
    for nested in ("{copy}", "from query('with w as ({quoted}) from w')"):
        copy = f"copy (select 1) to '{part}' (format parquet, use_tmp_file false)"
        sql = nested.format(copy=f"with w as ({copy}) select 1", quoted=copy.replace("'", "''"))
        with pytest.raises(InputError, match=r"^SQL: "):
            query(filled.root, sql).objects()
    assert part.read_bytes() == before


async def test_views_are_the_same_as_those_of_a_connection(filled: Store) -> None:
    with connect(filled.root) as connection:
        for view in (
            "rollouts",
            "evidence",
            "model_calls",
            "tokens",
            "turns",
            "tool_calls",
            "verdicts",
            "outcomes",
            "runs",
        ):
            expected = sorted(map(repr, connection.execute(f"from {view}").fetchall()))
            assert sorted(map(repr, query(filled.root, f"from {view}").rows)) == expected != []


async def test_memory_is_bounded(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymflow.store.sql.MEMORY_LIMIT", "64MB")
    with pytest.raises(InputError, match="more than 64MB of memory"):
        query(filled.root, "select list(range) from range(100000000) group by range % 7").objects()


async def test_an_unknown_name_is_answered_with_the_right_one(filled: Store) -> None:
    with pytest.raises(InputError, match='Did you mean "verdicts'):
        query(filled.root, "select * from verdict")
