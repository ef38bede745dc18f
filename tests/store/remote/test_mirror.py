"""A working folder and its bucket: what is fetched, what is sent, in which order, and what happens when both have gone on."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gymflow import collect
from gymflow.contracts.model import ModelSpec
from gymflow.contracts.run import EnvironmentSelection
from gymflow.contracts.trajectory import ModelCall
from gymflow.errors import InputError, RunIncomplete, RunLocked
from gymflow.store import Store, connect
from gymflow.store.merge import merge_runs
from gymflow.store.remote import mirror, sending


@pytest.fixture
def write(build: Any) -> Any:
    """Commit rollouts of a run, which is made if need be, and finish it."""

    def written(store: Store, run_id: str, indices: Any, *, finish: bool = True, planned: int = 8, **made: Any) -> None:
        async def fill() -> None:
            async with store.writer(run_id) as writer:
                await writer.add_verdict_set(build.verdict_set())
                for index in indices:
                    await writer.commit(build.record(run_id, index, **made), [build.verdict(run_id, index)])
                if finish:
                    await writer.finish()

        if not store.holds(run_id):
            build.run(store, run_id, planned)
        asyncio.run(fill())

    return written


def held(store: Store, run_id: str = "r") -> set[int]:
    return store.run(run_id).completed_indices()


def test_a_run_is_the_same_on_another_machine(machine: Any, write: Any) -> None:
    a, b = machine("a"), machine("b")
    with a.process() as store:
        write(store, "r", range(3))
        records = list(store.run("r").records(range(3)))
    with b.process() as store:
        assert list(store.run("r").records(range(3))) == records
        assert not store.run("r").being_written
        write(store, "r", range(3, 5))
    with a.process() as store:
        assert held(store) == set(range(5))


def test_only_what_a_command_reads_is_fetched(machine: Any, write: Any) -> None:
    a, b = machine("a"), machine("b")
    with a.process() as store:
        write(store, "r", range(3))
        write(store, "s", range(3))
    with b.process() as store:
        assert len(store.runs()) == 2
        assert not b.files("runs/*/parts/*/*")
        with connect(store.root) as connection:
            assert connection.execute("select count(*) from outcomes where reward = 1").fetchall() == [(6,)]
            assert {path.parent.name for path in b.files("runs/*/parts/*/*")} == {"rollouts", "verdicts"}
            assert connection.execute("select count(*) from turns").fetchall() == [(6,)]
        shutil.rmtree(b.folder)
    with b.process() as store:
        assert store.run("r").record(2).rollout.plan_index == 2
        assert {path.parents[2].name for path in b.files("runs/*/parts/evidence/*")} == {"r"}


def test_what_is_here_is_not_fetched_again(machine: Any, write: Any, service: Any) -> None:
    a, b = machine("a"), machine("b")
    with a.process() as store:
        write(store, "r", range(3))
    with b.process() as store:
        held(store)
    service.seen.clear()
    with b.process() as store:
        held(store)
    assert [method for method, _ in service.seen] == ["GET"]  # the listing


def test_what_the_manifest_names_goes_before_it_and_what_it_replaces_is_removed_after_it(
    machine: Any, write: Any, service: Any
) -> None:
    with machine("a").process() as store:
        write(store, "r", range(2), finish=False)
    assert any("/journal/000000.jsonl" in key for key in service.keys("PUT"))
    service.seen.clear()
    with machine("a").process() as store:
        write(store, "r", range(2, 4))
    steps = [
        (method, path) for method, path in service.seen if method in ("PUT", "POST") and "writer.lease" not in path
    ]
    names = [path for _, path in steps]
    manifest = next(at for at, name in enumerate(names) if name.endswith("manifest.json"))
    assert all(at < manifest for at, name in enumerate(names) if "/parts/" in name or name.endswith("000001.jsonl"))
    assert steps[-1][0] == "POST" and "delete" in names[-1]
    with machine("b").process() as store:
        assert held(store) == set(range(4))
        assert [path.name for path in machine("b").files("runs/r/journal/*")] == ["000001.jsonl"]


def test_the_journal_is_sent_in_pieces_of_some_size(
    machine: Any, build: Any, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "INTERVAL_S", 0.05)
    monkeypatch.setattr(sending, "PIECE_BYTES", 20_000)

    async def fill(store: Store) -> None:
        async with store.writer("r") as writer:
            for index in range(30):
                await writer.commit(build.record("r", index))
                await asyncio.sleep(0.03)

    with machine("a").process() as store:
        build.run(store, "r", 30)
        asyncio.run(fill(store))
        size = store.layout.run("r").segment(0).stat().st_size
    sent = [key for key in service.keys("PUT") if "/journal/" in key]
    assert len(sent) > 5 and 1 < len(set(sent)) <= size / 20_000 + 1
    with machine("b").process() as store:
        assert held(store) == set(range(30))


def test_artifacts_and_judgements_are_had_by_another_machine_when_it_asks(
    machine: Any, write: Any, service: Any
) -> None:
    call = ModelCall(
        index=0, turn=0, new_input=[], parameters={}, output=[], model="m", finish_reason="stop", started_at=1.0
    )
    with machine("a").process() as store:
        store.judgements.keep("ab" * 32, call)
        write(store, "r", range(1), text="long " * 100_000)
        digest = store.artifacts.put(b"a patch")
        write(store, "r", range(1, 2))
    with machine("b").process() as store:
        assert "long long" in str(store.run("r").record(0).evidence.response)
        assert store.artifacts.read(digest) == b"a patch"
        assert store.judgements.find("ab" * 32) == call
        assert store.judgements.find("cd" * 32) is None
        with pytest.raises(InputError, match="is missing"):
            store.artifacts.read("0" * 64)
    service.seen.clear()
    with machine("b").process() as store:
        write(store, "r", range(2, 3))
    assert not any("/artifacts/" in key for key in service.keys("PUT"))


def test_a_machine_that_was_left_behind_sets_what_it_had_aside(
    machine: Any, write: Any, service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = machine("a"), machine("b")
    with a.process() as store:
        write(store, "r", range(2), finish=False)
    service.status, service.code = 403, "AccessDenied"
    service.refuse = lambda method, path: method == "PUT" and "/journal/" in path
    with pytest.raises(RunIncomplete, match=r"nothing is lost.*the key was refused"), a.process() as store:
        write(store, "r", range(2, 4), finish=False)
    service.refuse = lambda method, path: False
    with b.process() as store:
        write(store, "r", range(2, 5), text="another sample")
    with a.process() as store:
        assert held(store) == set(range(5))
        assert "another sample" in str(store.run("r").record(2).evidence.response)
    assert "went on elsewhere without what was not uploaded from here" in caplog.text
    (kept,) = a.files("runs/.leftover-r.0/journal/*")
    assert kept.read_bytes().count(b'"kind":"rollout"') == 4


def test_what_was_sent_without_being_recorded_is_no_other_machine_s(
    machine: Any, write: Any, caplog: pytest.LogCaptureFixture
) -> None:
    a = machine("a")
    with a.process() as store:
        write(store, "r", range(2), finish=False)
        record = store.root / ".remote" / "r.json"
        mirror_ended = store._mirror
        assert mirror_ended is not None
        mirror_ended.settle()
        before = record.read_bytes()
    with a.process() as store:
        write(store, "r", range(2, 4), finish=False)
    record.write_bytes(before)  # as a process that was killed leaves it
    with store.layout.run("r").segment(0).open("ab") as segment:
        segment.write(b'{"crc":"torn')
    with a.process() as store:
        assert held(store) == set(range(4))
        write(store, "r", range(4, 6))
    assert not a.files("runs/.leftover*") and "elsewhere" not in caplog.text
    with machine("b").process() as store:
        assert held(store) == set(range(6))


def test_files_that_were_lost_here_are_fetched_again(machine: Any, write: Any) -> None:
    a = machine("a")
    with a.process() as store:
        write(store, "r", range(3))
    a.files("runs/r/parts/verdicts/*")[0].unlink()
    a.files("runs/r/plan.parquet")[0].unlink()
    with a.process() as store:
        assert len(store.run("r").verdicts(2)) == 1
    shutil.rmtree(a.files("runs/r")[0])
    with a.process() as store:
        assert held(store) == set(range(3))
    with machine("b").process() as store:
        assert held(store) == set(range(3))


def test_a_run_that_was_removed_from_the_bucket_is_no_run(
    machine: Any, write: Any, s3: Any, caplog: pytest.LogCaptureFixture
) -> None:
    a = machine("a")
    with a.process() as store:
        write(store, "r", range(2))
    for one in s3.list_objects_v2(Bucket="bucket", Prefix=a.url.rpartition("/")[2])["Contents"]:
        s3.delete_object(Bucket="bucket", Key=one["Key"])
    with a.process() as store:
        assert store.runs() == []
    assert "was removed from the bucket" in caplog.text and a.files("runs/.leftover-r.0/run.json")
    assert not s3.list_objects_v2(Bucket="bucket", Prefix=a.url.rpartition("/")[2]).get("Contents")


def test_a_run_that_another_machine_made_is_not_made_again(machine: Any, build: Any, write: Any) -> None:
    with machine("a").process() as store:
        write(store, "r", range(2))
    with machine("b").process() as store, pytest.raises(InputError, match="run r exists already in s3://"):
        build.run(store, "r", 8)


def test_runs_are_merged_on_any_machine_and_merged_again(machine: Any, write: Any) -> None:
    with machine("a").process() as store:
        write(store, "r", range(3))
        write(store, "s", range(3, 5))
    with machine("b").process() as store:
        assert merge_runs(store, ["r", "s"], "both").completed == 5
    with machine("a").process() as store:
        write(store, "s", range(5, 7))
    with machine("a").process() as store:
        assert merge_runs(store, ["r", "s"], "both").completed == 7
    with machine("b").process() as store:
        assert held(store, "both") == set(range(7))


async def test_a_run_that_is_written_elsewhere_is_neither_written_nor_merged(machine: Any, build: Any) -> None:
    a, b = machine("a"), machine("b")
    with a.process() as store:
        build.run(store, "r", 4)
        async with store.writer("r") as writer:
            await writer.commit(build.record("r", 0))
            store._mirror.push("r", store._mirror._uploads["r"]._held)
            with b.process() as other:
                with pytest.raises(RunLocked, match="is being written by process"):
                    await other.writer("r").__aenter__()
                assert other.run("r").being_written
                with pytest.raises(InputError, match="is being written"):
                    merge_runs(other, ["r"], "m")


async def test_who_was_away_until_another_took_over_changes_nothing_there(
    machine: Any, build: Any, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "INTERVAL_S", 3600)
    a, prefix = machine("a"), machine("a").url.rpartition("/")[2]

    async def some(writer: Any, indices: Any, text: str) -> None:
        for index in indices:
            await writer.commit(build.record("r", index, text=text))

    with pytest.raises(RunIncomplete, match="another machine writes the run now"), a.process() as store:
        build.run(store, "r", 6)
        async with store.writer("r") as writer:
            await some(writer, range(2), "before")
            upload = store._mirror._uploads["r"]
            store._mirror.push("r", upload._held)
            s3.delete_object(Bucket="bucket", Key=f"{prefix}/runs/r/writer.lease")  # as it is when it has run out
            with machine("b").process() as other:
                async with other.writer("r") as another:
                    await some(another, range(2, 5), "sampled by another")
            before = {one["Key"]: one["ETag"] for one in s3.list_objects_v2(Bucket="bucket", Prefix=prefix)["Contents"]}
            await some(writer, range(2, 4), "sampled here")
            with pytest.raises(RunLocked, match="went on on another machine"):
                store._mirror.push("r", upload._held)
            after = {one["Key"]: one["ETag"] for one in s3.list_objects_v2(Bucket="bucket", Prefix=prefix)["Contents"]}
            assert after == before
            upload._held._lost = True
    with a.process() as store:
        assert "sampled by another" in str(store.run("r").record(2).evidence.response)
        assert held(store) == set(range(5))
    assert a.files("runs/.leftover-r.0/journal/*")


async def test_a_trainer_s_samples_are_in_the_bucket_when_its_loop_ends(machine: Any) -> None:
    answers = ModelSpec(provider="scripted", parameters={"rules": [{"text": "The answer is (A)."}]})
    a = machine("a")
    with a.process():
        tasks = EnvironmentSelection(name="mcqa", limit=3)
        samples = [sample async for sample in collect(tasks, model=answers, store=a.url)]
        with machine("b").process() as store:
            assert len(samples) == 3 and held(store, store.run_ids()[0]) == {0, 1, 2}


def test_a_script_that_abandons_a_writer_ends_and_its_run_is_uploaded(machine: Any) -> None:
    a = machine("a")
    script = """
import asyncio, sys
sys.path.insert(0, "tests/store")
from conftest import Build
from gymflow.store import Store
build, store = Build(), Store(sys.argv[1])
build.run(store, "r", 2)

async def begin():
    writer = await store.writer("r").__aenter__()
    await writer.commit(build.record("r", 0))
    return writer

kept = asyncio.run(begin())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, a.url],
        cwd=Path(__file__).parents[3],
        env=os.environ | a.variables | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with machine("b").process() as store:
        assert held(store) == {0}


async def test_commits_do_not_wait_for_the_bucket(
    machine: Any, build: Any, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "INTERVAL_S", 0.05)
    with machine("a").process() as store:
        build.run(store, "r", 1000)
        async with store.writer("r") as writer:
            service.refuse = lambda method, path: method == "PUT" and "writer.lease" not in path
            loop = asyncio.get_running_loop()
            index, slowest = 0, 0.0
            while not service.refused or index < 50:
                begun = loop.time()
                await writer.commit(build.record("r", index))
                index, slowest = index + 1, max(slowest, loop.time() - begun)
            assert slowest < 1
            service.refuse = lambda method, path: False
    with machine("b").process() as other:
        assert len(held(other)) == index
