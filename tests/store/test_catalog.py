"""Runs of a store: created at once, found by name, extended, never confused by leftovers."""

import os
from pathlib import Path
from typing import Any

import pytest

from gymflow.errors import InputError
from gymflow.store import Store, connect
from gymflow.store.files import Files
from gymflow.store.manifest import RunManifest, write_manifest


def test_an_empty_store_has_no_runs_and_is_not_created_by_looking(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.runs() == []
    with pytest.raises(InputError, match="there is no run"):
        store.run("latest")
    assert not store.root.exists()


def test_runs_are_newest_first_and_found_by_name(store: Store, build: Any) -> None:
    for number, run_id in enumerate(["alpha-1", "alpha-2", "beta"]):
        build.run(store, run_id, 1, created_at=float(number))
    assert [document.run_id for document in store.runs()] == ["beta", "alpha-2", "alpha-1"]
    assert store.resolve_run_id("latest") == "beta"
    assert store.resolve_run_id("be") == "beta"
    assert store.resolve_run_id("alpha-1") == "alpha-1"
    with pytest.raises(InputError, match="beginning of 2 runs: alpha-1, alpha-2"):
        store.run("alp")
    with pytest.raises(InputError, match="did you mean alpha-2"):
        store.run("alpah-2")


def test_a_run_is_created_once(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    with pytest.raises(InputError, match="run r exists already"):
        build.run(store, "r", 1)


@pytest.mark.parametrize("run_id", ["", ".hidden", "../up", "a/b", "a b", "x" * 200])
def test_a_run_id_is_a_plain_name(store: Store, build: Any, run_id: str) -> None:
    with pytest.raises(InputError, match="use letters, digits"):
        build.run(store, run_id, 1)


def test_other_object_storage_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="gs:// is not supported; use a folder"):
        Store("gs://bucket/prefix")


async def test_rs_crash_before_metadata(store: Store, build: Any) -> None:
    journal = store.layout.run("r").journal
    journal.mkdir(parents=True)
    (journal / "000000.jsonl").write_bytes(b'{"crc":"0123')
    assert store.runs() == []
    with pytest.raises(InputError, match="no run 'r'"):
        store.writer("r")
    build.run(store, "r", 1)
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0))
    assert store.run("r").faults() == []
    (aside,) = store.layout.runs.glob(".leftover-r.*")
    assert (aside / "journal" / "000000.jsonl").read_bytes() == b'{"crc":"0123'


def test_a_damaged_document_hides_its_own_run_alone(store: Store, build: Any, caplog: Any) -> None:
    build.run(store, "good", 1)
    build.run(store, "bad", 1)
    store.layout.run("bad").document.write_text('{"run_id": 3}')
    assert [document.run_id for document in store.runs()] == ["good"]
    assert "bad/run.json" in caplog.text
    with pytest.raises(InputError, match=r"bad/run.json: damaged \("):
        store.document("bad")


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not a Parquet file at all"], ids=["empty", "short", "text"])
@pytest.mark.parametrize(
    "file", ["plan.parquet", "tasks.parquet", "parts/rollouts", "parts/verdicts", "parts/evidence"]
)
async def test_a_damaged_file_is_named_and_hides_its_own_run_alone(
    store: Store, build: Any, caplog: Any, file: str, damage: bytes
) -> None:
    build.run(store, "good", 1)
    build.run(store, "bad", 1)
    async with store.writer("bad") as writer:
        await writer.add_verdict_set(build.verdict_set())
        await writer.commit(build.record("bad", 0), [build.verdict("bad", 0)])
        await writer.finish()
    path = store.layout.run("bad").folder / file
    path = path if path.is_file() else next(path.glob("*.parquet"))
    whole = path.read_bytes()
    for content in (damage, whole[: len(whole) // 2], whole[:-3]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"{path.name}: damaged"):
            store.run("bad")
        with connect(store.root) as connection:
            assert connection.execute("select run_id from runs").fetchall() == [("good",)]
        assert f"{path.name}: damaged" in caplog.text
    path.write_bytes(whole)
    assert store.run("bad").completed_indices() == {0}


async def test_rs_empty_sidecar(store: Store, build: Any) -> None:
    """An empty manifest is the first one while nothing was committed through it, and is never taken for that afterwards."""
    build.run(store, "r", 2)
    path = store.layout.run("r").manifest
    path.write_bytes(b"")
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0))
        assert len(store.run("r").completed()) == 1
        await writer.finish()
    assert len(store.run("r").completed()) == 1
    for lost in (b"", None):
        path.write_bytes(b"")
        if lost is None:
            path.unlink()
        with pytest.raises(InputError, match=r"manifest.json: lost or empty, though the run has parts"):
            store.run("r").completed()
        with pytest.raises(InputError, match="lost or empty"):
            async with store.writer("r"):
                pass
    path.write_text('{"parts": 3}')
    with pytest.raises(InputError, match=r"manifest.json: damaged \(parts"):
        store.run("r").completed()


def test_a_run_of_a_newer_version_is_refused(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    write_manifest(store.layout.run("r"), RunManifest(schema_version=99), Files())
    with pytest.raises(InputError, match="written by a newer gymflow"):
        store.run("r").completed()


async def test_a_part_that_is_gone_is_named(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0))
        await writer.finish()
    part = next(store.layout.run("r").folder.glob("parts/rollouts/*"))
    part.unlink()
    with pytest.raises(InputError, match=rf"{part.name}: missing, though the run's manifest names it"):
        store.run("r").completed()


async def test_a_journal_segment_that_is_gone_is_named(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    write_manifest(store.layout.run("r"), RunManifest(journal_from=3), Files())
    with pytest.raises(InputError, match=r"000003\.jsonl: missing"):
        store.run("r").completed()


async def test_files_that_a_crash_left_are_removed_by_the_next_writer(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    layout = store.layout.run("r")
    stray = layout.part("rollouts", "000007.parquet")
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"half a part")
    temporary = layout.folder / ".manifest.json.999999999.1.tmp"
    temporary.write_bytes(b"{")
    being_written = layout.folder / f".plan.parquet.{os.getppid()}.tmp"
    being_written.write_bytes(b"PAR1")
    assert store.run("r").completed() == {}
    async with store.writer("r"):
        pass
    assert not stray.exists() and not temporary.exists() and being_written.exists()


def test_drafts_of_dead_processes_are_removed_and_live_ones_are_not(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    host = os.uname().nodename
    dead = store.layout.runs / f".new-a.{host}.999999999"
    live = store.layout.runs / f".new-b.{host}.{os.getppid()}"
    elsewhere = store.layout.runs / ".new-c.elsewhere.1"
    for draft in (dead, live, elsewhere):
        draft.mkdir()
    build.run(store, "s", 1)
    assert not dead.exists() and live.exists() and elsewhere.exists()


def test_ds_bigint(store: Store, build: Any) -> None:
    task = {"id": "a", "prompt": "x", "metadata": {"seed": 18446744073709551617}}
    store.create_run(build.document("r"), [build.task(0, task)], [build.planned(0)])
    assert [row.task for row in store.run("r").tasks()] == [task]
    with connect(store.root) as connection:
        sql = "select task->>'$.metadata.seed' from tasks"
        assert connection.execute(sql).fetchall() == [("18446744073709551617",)]


async def test_a_plan_grows_and_keeps_what_is_done(store: Store, build: Any) -> None:
    build.run(store, "r", 2)
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0))
        store.extend_plan("r", [build.task(1), build.task(2)], [build.planned(2), build.planned(3)])
    reader = store.run("r")
    assert [row.plan_index for row in reader.plan()] == [0, 1, 2, 3]
    assert [row.task_index for row in reader.tasks()] == [0, 1, 2]
    assert [row.plan_index for row in reader.pending()] == [1, 2, 3]
    with pytest.raises(InputError, match="rollout 1 is planned already"):
        store.extend_plan("r", [], [build.planned(1)])
    other = build.task(1).model_copy(update={"row_digest": "other"})
    with pytest.raises(InputError, match="task 1 is planned already, with another content"):
        store.extend_plan("r", [other], [])
    assert reader.planned() == 4


def test_artifacts_are_stored_once_and_only_digests_name_them(store: Store) -> None:
    digest = store.artifacts.put(b"patch")
    assert store.artifacts.put(b"patch") == digest
    assert store.artifacts.read(digest) == b"patch"
    assert store.artifacts.path(digest).relative_to(store.root) == Path("artifacts", digest[:2], digest)
    with pytest.raises(InputError, match="is not the digest of an artifact"):
        store.artifacts.read("../../run.json")
    with pytest.raises(InputError, match="is missing"):
        store.artifacts.read("0" * 64)
