"""The writer: what is acknowledged is durable, as one, once."""

import asyncio
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from gymflow.contracts.outcome import Status, VerdictFailure
from gymflow.contracts.trajectory import CallTokens, ModelCall
from gymflow.errors import InputError
from gymflow.store import Store, connect
from gymflow.store.encoding import VALUE_LIMIT
from gymflow.store.files import Files
from gymflow.store.tables import SCHEMAS


def parts(store: Store, run_id: str, table: str) -> list[Path]:
    layout = store.layout.run(run_id)
    return [layout.part(table, part.file) for part in store.run(run_id).manifest.parts.get(table, [])]


async def test_a_rollout_reads_back_as_it_was_committed(store: Store, build: Any) -> None:
    build.run(store, "r", 3)
    records = [build.record("r", index, snapshot={"n": index}) for index in range(3)]
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        for index, record in enumerate(records):
            await writer.commit(record, [build.verdict("r", index)])
        reader = store.run("r")
        assert [reader.record(index) for index in range(3)] == records
        await writer.finish()
    reader = store.run("r")
    assert list(reader.records([0, 1, 2])) == records
    assert reader.verdicts(1) == [build.verdict("r", 1)]
    assert list(reader.layout.journal.glob("*.jsonl")) == [reader.layout.segment(1)]


@pytest.mark.parametrize("where", ["journal", "parts"])
async def test_a_rollout_that_has_gone_on_is_replaced_when_that_is_said(store: Store, build: Any, where: str) -> None:
    build.run(store, "r", 2)
    async with store.writer("r") as writer:
        for step in range(3):
            for index in range(2):
                await writer.commit(build.record("r", index, snapshot={"step": step}), again=True)
            if where == "parts" and step < 2:
                await writer.roll()
    reader = store.run("r")
    assert [record.evidence.snapshot for record in reader.records([0, 1])] == [{"step": 2}] * 2
    assert reader.pending() == []
    async with store.writer("r") as writer:
        assert writer.status(1) is Status.COMPLETED
        await writer.finish()
    with connect(store.root) as connection:
        for table in ("rollouts", "evidence"):
            [(count,)] = connection.execute(f"select count(*) from {table}").fetchall()
            assert count == 2
    assert store.run("r").record(0).evidence.snapshot == {"step": 2}


async def test_a_completed_rollout_is_not_committed_twice(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    async with store.writer("r") as writer:
        first = asyncio.ensure_future(writer.commit(build.record("r", 0)))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="durable already"):
            await writer.commit(build.record("r", 0))
        await first
        with pytest.raises(ValueError, match="durable already"):
            await writer.commit(build.record("r", 0))
    async with store.writer("r") as writer:
        assert writer.status(0) is Status.COMPLETED
        with pytest.raises(ValueError, match="durable already"):
            await writer.commit(build.record("r", 0))


@pytest.mark.parametrize("finish_between", [False, True])
async def test_a_failed_rollout_is_superseded_and_its_attempts_are_kept(
    store: Store, build: Any, finish_between: bool
) -> None:
    build.run(store, "r", 2)
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0, status=Status.FAILED))
        await writer.commit(build.record("r", 1, status=Status.FAILED))
        if finish_between:
            await writer.finish()
        await writer.commit(build.record("r", 0))
    for finished in (False, True):
        reader = store.run("r")
        assert reader.completed() == {0: Status.COMPLETED, 1: Status.FAILED}
        assert [row.plan_index for row in reader.pending()] == [1]
        assert reader.record(0).rollout.status is Status.COMPLETED
        with connect(store.root) as connection:
            counts = connection.execute(
                """select (select count(*) from rollouts), (select count(*) from evidence), (select count(*) from model_calls),
                          (select count(*) from tokens), (select count(*) from attempts)"""
            ).fetchall()
        assert counts == [(2, 2, 2, 2, 2)]
        if not finished:
            async with store.writer("r") as writer:
                await writer.finish()
    assert sum(pq.read_metadata(path).num_rows for path in parts(store, "r", "rollouts")) == 2


async def test_a_commit_whose_caller_is_cancelled_still_counts(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    async with store.writer("r") as writer:
        commit = asyncio.ensure_future(writer.commit(build.record("r", 0)))
        await asyncio.sleep(0)
        commit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await commit
    assert store.run("r").completed() == {0: Status.COMPLETED}


async def test_io_nan_reward(store: Store, build: Any) -> None:
    build.run(store, "r", 3)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        for index, reward in enumerate([1.0, math.nan, 0.0]):
            await writer.commit(build.record("r", index), [build.verdict("r", index, reward=reward)])
    sql = """select avg(reward), count(*) filter (outcome = 'scored'), count(*) filter (outcome = 'unverified')
             from outcomes"""
    with connect(store.root) as connection:
        assert connection.execute(sql).fetchall() == [(0.5, 2, 1)]
    async with store.writer("r") as writer:
        await writer.finish()
    with connect(store.root) as connection:
        assert connection.execute(sql).fetchall() == [(0.5, 2, 1)]
    (verdict,) = store.run("r").verdicts(1)
    assert (verdict.verdict, verdict.failure, verdict.passed) == (None, VerdictFailure.VERIFIER_ERROR, None)
    assert "nan" in (verdict.failure_message or "")


async def test_other_numbers_that_are_not_finite_are_null_and_flagged(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    record = build.record("r", 0, snapshot={"balance": math.inf})
    record.model_calls[0].tokens = CallTokens(
        chained=False, prompt_token_ids=[1], completion_token_ids=[2], logprobs=[-math.inf]
    )
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        await writer.commit(record, [build.verdict("r", 0, components={"style": math.nan, "content": 1.0})])
        await writer.finish()
    with connect(store.root) as connection:
        flags, snapshot, logprobs = connection.execute(
            """select rollouts.flags, evidence.snapshot, tokens.logprobs
               from rollouts join evidence using (rollout_id) join tokens using (rollout_id)"""
        ).fetchall()[0]
        components = connection.execute("select components, flags from verdicts").fetchall()
    assert (flags, snapshot, logprobs) == (["non_finite"], '{"balance":null}', [None, None])
    assert components == [('{"style":null,"content":1.0}', ["non_finite"])]


@pytest.mark.parametrize("finished", [False, True])
async def test_io_lone_surrogate_is_the_same_in_journal_parquet_and_sql(
    store: Store, build: Any, finished: bool
) -> None:
    build.run(store, "r", 2)
    async with store.writer("r") as writer:
        await asyncio.gather(
            writer.commit(build.record("r", 0, text="abc \ud835 def", snapshot={"\udc00k": 1})),
            writer.commit(build.record("r", 1)),
        )
        if finished:
            await writer.finish()
    assert len(store.run("r").completed()) == 2
    batch = next(iter(store.run("r").stored()))
    assert batch[0].evidence.final_text == "abc \ufffd def"
    assert batch[0].evidence.snapshot == {"\ufffdk": 1}
    with connect(store.root) as connection:
        said = connection.execute(
            "select response->>'$.output[0].content[0].text' from evidence order by plan_index"
        ).fetchall()
        flags = connection.execute("select flags from rollouts order by plan_index").fetchall()
    assert said == [("abc \ufffd def",), ("The answer is (A).",)]
    assert flags == [(["surrogate"],), ([],)]


async def test_integers_beyond_64_bit_reach_the_verifier_exactly(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    for finished in (False, True):
        async with store.writer("r") as writer:
            if not finished:
                await writer.commit(build.record("r", 0, snapshot={"id": 18446744073709551617}))
            else:
                await writer.finish()
        (batch,) = store.run("r").stored()
        assert batch[0].evidence.snapshot == {"id": 18446744073709551617}
        assert store.run("r").record(0).evidence.snapshot == {"id": 18446744073709551617}


@pytest.mark.parametrize("finished", [False, True])
async def test_long_values_lie_beside_the_row_and_are_read_as_if_in_it(
    store: Store, build: Any, finished: bool
) -> None:
    build.run(store, "r", 1)
    long = "x" * (VALUE_LIMIT + 1)
    record = build.record("r", 0, text=long)
    async with store.writer("r") as writer:
        await writer.commit(record)
        if finished:
            await writer.finish()
    reader = store.run("r")
    assert reader.record(0) == record
    (batch,) = reader.stored()
    assert batch[0].evidence.final_text == long
    (artifact,) = store.layout.artifacts.glob("*/*")
    assert artifact.read_text() == long
    with connect(store.root) as connection:
        (length,) = connection.execute("select length(response) from evidence").fetchall()[0]
    assert length < 1000


async def test_the_journal_is_converted_while_rollouts_are_committed(
    store: Store, build: Any, small_journal: None
) -> None:
    build.run(store, "r", 60)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        for start in range(0, 60, 6):
            await asyncio.gather(
                *(writer.commit(build.record("r", i), [build.verdict("r", i)]) for i in range(start, start + 6)),
                writer.roll(),
            )
        await writer.close()
        assert len(parts(store, "r", "rollouts")) > 1
        assert sorted(store.run("r").completed()) == list(range(60))
        assert sum(map(len, store.run("r").stored())) == 60
    async with store.writer("r") as writer:
        await writer.finish()
    counted = {table: len(parts(store, "r", table)) for table in SCHEMAS}
    assert counted == {**dict.fromkeys(SCHEMAS, 1), "attempts": 0}
    assert sorted(store.run("r").completed()) == list(range(60))


async def test_rs_usage_carried(store: Store, build: Any) -> None:
    build.run(store, "r", 15)
    for start, count in ((0, 10), (10, 5)):
        async with store.writer("r") as writer:
            for index in range(start, start + count):
                await writer.commit(build.record("r", index, tokens=50))
            await writer.finish()
    with connect(store.root) as connection:
        total = connection.execute("select sum(prompt_tokens + completion_tokens) from rollouts").fetchall()
    assert total == [(1500,)]


async def test_rs_reverify_mixed(store: Store, build: Any) -> None:
    """Two verifiers never share a set, each verdict says who gave it, and rescoring again changes nothing."""
    build.run(store, "r", 10)
    other = build.judged.model_copy(update={"code_digest": "2" * 64})
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set("first"))
        for index in range(10):
            await writer.commit(build.record("r", index), [build.verdict("r", index)])
        await writer.add_verdict_set(build.verdict_set("second", judged=other))
        with pytest.raises(InputError, match="judged by another verifier"):
            await writer.add_verdict_set(build.verdict_set("first", judged=other))
        with pytest.raises(ValueError, match="not announced"):
            await writer.commit_verdicts([build.verdict("r", 0, verdict_set="third")])
        rescored = [
            build.verdict("r", index, reward=0.0, verdict_set="second").model_copy(update={"judged": other})
            for index in range(10)
        ]
        assert await writer.commit_verdicts(rescored[:4]) == 4
        assert await writer.commit_verdicts(rescored) == 6
        await writer.finish()
        assert await writer.commit_verdicts(rescored) == 0
    async with store.writer("r") as writer:
        assert await writer.commit_verdicts(rescored) == 0
    with connect(store.root) as connection:
        rows = connection.execute(
            "select verdict_set, code_digest, count(*), avg(reward), bool_or(is_current) from verdicts group by all order by all"
        ).fetchall()
    assert rows == [("first", "c" * 64, 10, 1.0, False), ("second", "2" * 64, 10, 0.0, True)]


@pytest.mark.parametrize("finish_between", [False, True])
async def test_a_verdict_that_failed_is_replaced_in_its_set(store: Store, build: Any, finish_between: bool) -> None:
    build.run(store, "r", 2)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        for index in range(2):
            await writer.commit(build.record("r", index), [build.verdict("r", index, reward=None)])
        if finish_between:
            await writer.finish()
        assert await writer.commit_verdicts([build.verdict("r", 0), build.verdict("r", 1, reward=None)]) == 2
    for finished in (False, True):
        with connect(store.root) as connection:
            rows = connection.execute("select rollout_id, reward from verdicts order by 1").fetchall()
        assert rows == [("r-0", 1.0), ("r-1", None)]
        assert [v.verdict is not None for v in store.run("r").verdicts(0)] == [True]
        if not finished:
            async with store.writer("r") as writer:
                await writer.finish()


async def test_a_rollout_gets_one_verdict_a_set_however_often_it_is_given(store: Store, build: Any) -> None:
    build.run(store, "r", 2)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        await writer.commit(build.record("r", 0), [build.verdict("r", 0, reward=math.nan)])
        await writer.commit(build.record("r", 1), [build.verdict("r", 1)])
        again = [build.verdict("r", 0), build.verdict("r", 0), build.verdict("r", 1)]
        assert sum(await asyncio.gather(*(writer.commit_verdicts(again) for _ in range(3)))) == 1
    with connect(store.root) as connection:
        assert connection.execute("select rollout_id, reward from verdicts order by 1").fetchall() == [
            ("r-0", 1.0),
            ("r-1", 1.0),
        ]


@pytest.mark.parametrize("unwritten", ["manifest.json", ".parquet"])
async def test_a_superseded_record_stays_so_when_its_conversion_fails(
    tmp_path: Path, build: Any, hooked: Any, unwritten: str
) -> None:
    failing = False

    def hook(operation: str, number: int, target: Any, data: bytes | None) -> None:
        if failing and operation in ("rename", "sync_file") and str(target).endswith(unwritten):
            raise OSError(28, "No space left on device")

    store = Store(tmp_path, files=hooked(hook))
    build.run(store, "r", 1)
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0, status=Status.FAILED))
        await writer.roll()
        await writer.commit(build.record("r", 0))
        for failing in (True, False):
            if failing:
                with pytest.raises(InputError, match="no space left"):
                    await writer.finish()
            else:
                await writer.finish()
            with connect(tmp_path) as connection:
                assert connection.execute("select status from rollouts").fetchall() == [("completed",)]


async def test_rs_disk_full(tmp_path: Path, build: Any, full_disk: Callable[[int], Files]) -> None:
    build.run(Store(tmp_path), "r", 200)
    acknowledged: set[int] = set()
    store = Store(tmp_path, files=full_disk(40))
    with pytest.raises(InputError, match="no space left on the disk"):
        async with store.writer("r") as writer:
            for index in range(200):
                await writer.commit(build.record("r", index))
                acknowledged.add(index)
    healthy = Store(tmp_path)
    assert 0 < len(acknowledged) < 200
    assert set(healthy.run("r").completed()) == acknowledged
    async with healthy.writer("r") as writer:
        for index in sorted(set(range(200)) - acknowledged):
            await writer.commit(build.record("r", index))
        await writer.finish()
    assert len(healthy.run("r").completed()) == 200
    assert healthy.run("r").faults() == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a file system can be mounted by root alone")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_rs_disk_full_on_a_real_disk(tiny_disk: Path, build: Any) -> None:
    store = Store(tiny_disk)
    build.run(store, "r", 200)
    acknowledged: set[int] = set()
    with pytest.raises(InputError, match="no space left on the disk"):
        async with store.writer("r") as writer:
            for index in range(200):
                await writer.commit(build.record("r", index, text=f"{index} " * 4000))
                acknowledged.add(index)
    assert 0 < len(acknowledged) < 200
    assert set(store.run("r").completed()) == acknowledged
    assert [store.run("r").record(index).rollout.plan_index for index in sorted(acknowledged)] == sorted(acknowledged)


async def test_a_full_disk_is_said_also_where_an_artifact_does_not_fit(
    tmp_path: Path, build: Any, full_disk: Callable[[int], Files]
) -> None:
    build.run(Store(tmp_path), "r", 1)
    async with Store(tmp_path, files=full_disk(0)).writer("r") as writer:
        with pytest.raises(InputError, match="no space left on the disk"):
            await writer.put_artifact(b"workspace")
        with pytest.raises(InputError, match="no space left on the disk"):
            await writer.commit(build.record("r", 0, text="x" * (VALUE_LIMIT + 1)))
        with pytest.raises(InputError, match="no space left on the disk"):
            await writer.add_verdict_set(build.verdict_set())
    assert Store(tmp_path).run("r").completed() == {}
    assert not list(tmp_path.glob("artifacts/*/*"))


async def test_a_conversion_that_fails_leaves_the_journal_in_force(tmp_path: Path, build: Any, hooked: Any) -> None:
    failing = False

    def hook(operation: str, number: int, target: Any, data: bytes | None) -> None:
        if failing and operation == "sync_file" and str(target).endswith(".parquet"):
            raise OSError(28, "No space left on device")

    store = Store(tmp_path, files=hooked(hook))
    build.run(store, "r", 4)
    async with store.writer("r") as writer:
        for index in range(3):
            await writer.commit(build.record("r", index))
        failing = True
        with pytest.raises(InputError, match="no space left on the disk; every rollout"):
            await writer.finish()
        failing = False
        await writer.commit(build.record("r", 3))
    assert not list(tmp_path.glob("runs/r/parts/*/*"))
    assert len(store.run("r").completed()) == 4
    async with store.writer("r") as writer:
        await writer.finish()
    assert len(store.run("r").completed()) == 4


async def test_damage_is_kept_for_inspection_when_the_segment_is_converted(store: Store, build: Any) -> None:
    build.run(store, "r", 3)
    async with store.writer("r") as writer:
        for index in range(3):
            await writer.commit(build.record("r", index))
    segment = store.layout.run("r").segment(0)
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b"question 1", b"question X"))
    assert set(store.run("r").completed()) == {0, 2}
    assert len(store.run("r").faults()) == 1
    async with store.writer("r") as writer:
        await writer.finish()
    assert set(store.run("r").completed()) == {0, 2}
    assert len(store.run("r").faults()) == 1
    assert b"question X" in segment.with_suffix(".damaged").read_bytes()


async def test_a_row_of_rollouts_is_narrow_and_bytes_per_turn_do_not_grow(store: Store, build: Any) -> None:
    build.run(store, "r", 2)
    sizes = []
    for index, turns in enumerate((10, 200)):
        calls = [
            ModelCall(
                index=turn,
                parent=turn - 1 if turn else None,
                new_input=[{"type": "message", "role": "user", "content": f"{turn:03d} " * 50}],
                output=[{"type": "message", "role": "assistant", "content": f"{turn:03d} " * 50}],
                model="m",
                started_at=1.0,
            )
            for turn in range(turns)
        ]
        async with store.writer("r") as writer:
            await writer.commit(build.record("r", index, calls=calls))
        line = store.layout.run("r").segment(0).read_bytes().splitlines()[-1]
        sizes.append(len(line) / turns)
        assert len(orjson.dumps(orjson.loads(line)["record"]["rollout"])) < 1000
    assert sizes[1] < sizes[0] * 1.01


async def test_evidence_has_row_groups_limited_by_bytes(
    store: Store, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gymflow.store.parts.ROW_GROUP_BYTES", 1 << 20)
    monkeypatch.setattr("gymflow.store.parts._PARSED_BYTES", 1 << 18)
    build.run(store, "r", 40)
    async with store.writer("r") as writer:
        for index in range(40):
            await writer.commit(build.record("r", index, text=chr(65 + index % 26) * 100_000))
        await writer.finish()
    (path,) = parts(store, "r", "evidence")
    metadata = pq.read_metadata(path)
    assert metadata.num_row_groups >= 3
    assert max(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)) < 4 << 20
    assert metadata.metadata[b"schema_version"] == b"1"


def test_importing_the_store_imports_nothing_heavy() -> None:
    code = "import sys, gymflow.store; print([m for m in ('duckdb', 'pyarrow', 'pydantic', 'prefect') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
