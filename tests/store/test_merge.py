"""Merging runs: one sample a planned rollout, whatever the order, to the byte."""

import asyncio
import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gymflow.contracts.outcome import Status
from gymflow.contracts.run import Shard
from gymflow.errors import InputError, RunLocked
from gymflow.store import Store, connect
from gymflow.store.files import Files
from gymflow.store.merge import merge_runs

TASKS = 6


class Shards:
    """Runs that hold parts of one plan."""

    def __init__(self, store: Store, build: Any) -> None:
        self.store, self.build = store, build

    def write(
        self,
        run_id: str,
        planned: Iterable[int],
        *,
        rewards: dict[int, float] | None = None,
        failed: Iterable[int] = (),
        missing: Iterable[int] = (),
        shard: tuple[int, int] | None = None,
        differ: str = "",
        sets: tuple[str, ...] = ("first",),
        created_at: float = 1.0,
    ) -> str:
        """`rewards`: other than 1; `differ` goes into the evidence of every sample, so that it is another one."""
        build, planned = self.build, list(planned)
        document = build.document(run_id, created_at)
        config = document.config.model_copy(update={"shard": Shard(index=shard[0], count=shard[1]) if shard else None})
        self.store.create_run(
            document.model_copy(update={"config": config}),
            map(build.task, range(TASKS)),
            map(build.planned, planned),
        )

        async def fill() -> None:
            async with self.store.writer(run_id) as writer:
                for name in sets:
                    await writer.add_verdict_set(build.verdict_set(name))
                for index in planned:
                    if index in missing:
                        continue
                    status = Status.FAILED if index in failed else Status.COMPLETED
                    record = build.record(run_id, index, status=status, text=f"The answer is (A).{differ}")
                    record.rollout.evidence_digest += differ
                    record.rollout.started_at += len(differ)
                    reward = (rewards or {}).get(index, 1.0)
                    verdicts = [build.verdict(run_id, index, reward=reward, verdict_set=name) for name in sets]
                    await writer.commit(record, [] if index in failed else verdicts)
                await writer.finish()

        asyncio.run(fill())
        return run_id

    def rows(self, sql: str, run_id: str = "m") -> list[tuple[Any, ...]]:
        with connect(self.store.root, runs=[run_id]) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture
def shards(store: Store, build: Any) -> Shards:
    return Shards(store, build)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_shards_become_the_whole_run(store: Store, shards: Shards) -> None:
    for index in range(3):
        shards.write(f"s{index}", range(index, TASKS, 3), shard=(index, 3), created_at=10.0 - index)
    report = merge_runs(store, ["s0", "s1", "s2"], "m")
    assert (report.planned, report.completed, report.incomplete) == (TASKS, TASKS, 0)
    assert (report.conflicts, report.missing, report.missing_shards, report.equal) == ([], [], [], 0)
    assert shards.rows("select plan_index, task_id, outcome, reward from outcomes order by plan_index") == [
        (index, f"q{index}", "scored", 1.0) for index in range(TASKS)
    ]
    document = store.document("m")
    assert (document.merged_from, document.config.shard, document.created_at) == (["s0", "s1", "s2"], None, 8.0)


def test_records_come_back_whole_under_their_new_name(store: Store, shards: Shards) -> None:
    shards.write("s0", [0, 2], failed=[2])
    merge_runs(store, ["s0"], "m")
    before, after = store.run("s0"), store.run("m")
    for index in (0, 2):
        old, new = before.record(index), after.record(index)
        renamed = {"run_id": "m", "rollout_id": f"m-{index}"}
        assert new == old.model_copy(update={"rollout": old.rollout.model_copy(update=renamed)})
        assert new.rollout.sampled_in == "s0"
    [verdict] = after.verdicts(0)
    assert (verdict.rollout_id, verdict.verdict) == ("m-0", before.verdicts(0)[0].verdict)
    assert [len(batch) for batch in after.stored()] == [1]


def test_the_order_of_the_runs_changes_no_byte(store: Store, shards: Shards) -> None:
    shards.write("s0", [0, 1, 2], rewards={2: 0.0}, failed=[1])
    shards.write("s1", [1, 2, 3], differ="!")
    shards.write("s2", [4, 5], missing=[5])
    folder, found = store.layout.run("m").folder, []
    for order in itertools.permutations(["s0", "s1", "s2"]):
        merge_runs(store, order, "m")
        found.append(content(folder))
        shutil.rmtree(folder)
    assert all(one == found[0] for one in found)
    assert any(name.startswith("parts/verdicts") for name in found[0])


def test_merging_again_changes_nothing_and_step_by_step_is_the_same(
    store: Store, shards: Shards, tmp_path: Path
) -> None:
    shards.write("s0", [0, 3])
    shards.write("s1", [1, 4])
    shards.write("s2", [2, 5])
    folder = store.layout.run("m").folder
    merge_runs(store, ["s2", "s0", "s1"], "m")
    at_once = content(folder)
    for runs in (["s0", "s1", "s2"], ["m"], ["s1", "m"], ["s2", "s0"]):
        merge_runs(store, runs, "m")
        after = content(folder)
        after.pop("writer.lock")
        assert after == at_once
    shutil.rmtree(folder)
    for runs in (["s1"], ["s2"], ["s0"]):
        merge_runs(store, runs, "m")
    stepwise = content(folder)
    stepwise.pop("writer.lock", None)
    assert stepwise == at_once


def test_rs_merge_duplicate_key(store: Store, shards: Shards, faults: dict[str, dict[str, Any]]) -> None:
    """The documented rule: the sample that began first counts, and the report names the task, the repeat and both runs."""
    given = faults["rs-merge-duplicate-key"]["input"]
    ids = {"t1": 1, "t2": 2}
    for name, differ in (("shard0", "later"), ("shard1", "")):
        rewards = {ids[task]: reward for task, _, reward in given[name]}
        shards.write(name, list(rewards), rewards=rewards, differ=differ)
    report = merge_runs(store, ["shard0", "shard1"], "m")
    [conflict] = report.conflicts
    assert (conflict.task_id, conflict.repeat, conflict.kept, conflict.left_out) == ("q1", 0, "shard1", ["shard0"])
    assert shards.rows("select task_id, reward from outcomes order by all") == [("q1", 0.0), ("q2", 1.0)]


def test_equal_samples_are_counted_and_completed_ones_win_over_failed_ones(store: Store, shards: Shards) -> None:
    shards.write("s0", [0, 1, 2], failed=[1, 2])
    shards.write("s1", [0, 1, 2], failed=[2])
    report = merge_runs(store, ["s0", "s1"], "m")
    assert (report.equal, report.conflicts, report.completed, report.failed) == (1, [], 2, 1)
    assert shards.rows("select status, sampled_in from rollouts order by plan_index") == [
        ("completed", "s0"),
        ("completed", "s1"),
        ("failed", "s0"),
    ]


def test_what_is_missing_is_listed_with_the_shards_that_are(store: Store, shards: Shards) -> None:
    shards.write("s0", [0, 3], missing=[3], shard=(0, 3))
    shards.write("s2", [2, 5], failed=[5], shard=(2, 3))
    report = merge_runs(store, ["s0", "s2"], "m")
    assert report.missing_shards == ["1/3"]
    assert [(one.task_id, one.repeats) for one in report.missing] == [("q3", [0]), ("q5", [0])]
    assert (report.planned, report.completed, report.failed, report.incomplete) == (4, 2, 1, 2)


def test_other_settings_are_refused_by_name(store: Store, shards: Shards, build: Any) -> None:
    shards.write("s0", [0])
    other = build.document("s1")
    changed = other.fingerprint.model_copy(update={"sampling": {"model": "another"}})
    store.create_run(other.model_copy(update={"fingerprint": changed}), [build.task(0)], [build.planned(0)])
    with pytest.raises(InputError, match="s0 and s1 were sampled with another model"):
        merge_runs(store, ["s0", "s1"], "m")
    assert not store.layout.run("m").folder.exists()


def test_a_run_with_something_of_its_own_is_no_target(store: Store, shards: Shards, build: Any) -> None:
    shards.write("s0", [0])
    shards.write("s1", [1])
    with pytest.raises(InputError, match="s1 was sampled itself"):
        merge_runs(store, ["s0"], "s1")
    merge_runs(store, ["s0", "s1"], "m")

    async def rescore() -> None:
        async with store.writer("m") as writer:
            await writer.add_verdict_set(build.verdict_set("second"))
            await writer.commit_verdicts([build.verdict("m", 0, verdict_set="second")])

    asyncio.run(rescore())
    with pytest.raises(InputError, match="verdict sets of its own"):
        merge_runs(store, ["s0", "s1"], "m")
    report = merge_runs(store, ["m"], "n")
    assert (report.sources, report.verdict_sets) == (["m"], ["first", "second"])


def test_rs_reverify_mixed(store: Store, shards: Shards) -> None:
    """Rewards of two verifiers never stand in one set: only sets that every source has are taken over, the others are named."""
    shards.write("s0", [0], sets=("first", "second"))
    shards.write("s1", [1], sets=("first",))
    report = merge_runs(store, ["s0", "s1"], "m")
    assert report.verdict_sets == ["first"]
    assert report.left_out_verdict_sets == {"second": ["s1"]}
    assert shards.rows("select distinct verdict_set from verdicts") == [("first",)]


def test_a_run_that_is_being_written_is_refused(store: Store, shards: Shards) -> None:
    shards.write("s0", [0])

    async def meanwhile() -> None:
        async with store.writer("s0"):
            merge_runs(store, ["s0"], "m")

    with pytest.raises(InputError, match="s0 is being written"):
        asyncio.run(meanwhile())


MERGER = """
import sys
from gymflow.errors import RunLocked
from gymflow.store import Store
from gymflow.store.files import Files
from gymflow.store.merge import merge_runs

class Waiting(Files):
    def make_folder(self, path):
        super().make_folder(path)
        print("merging", flush=True)
        sys.stdin.readline()

merge_runs(Store(sys.argv[1]), ["s0", "s1"], "m", Waiting())
"""


def test_of_two_processes_that_merge_into_one_run_the_second_is_refused(store: Store, shards: Shards) -> None:
    shards.write("s0", [0])
    shards.write("s1", [1])
    first = subprocess.Popen(
        [sys.executable, "-c", MERGER, str(store.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None and first.stdout.readline() == "merging\n"
    with pytest.raises(RunLocked, match=f"run m is being written by process {first.pid}"):
        merge_runs(store, ["s0"], "m")
    merge_runs(store, ["s0"], "another")
    first.communicate("\n" * 10)
    assert first.returncode == 0
    whole = content(store.layout.run("m").folder)
    merge_runs(store, ["s1"], "m")
    assert whole == {
        name: data for name, data in content(store.layout.run("m").folder).items() if name != "writer.lock"
    }
    assert sorted(path.name for path in store.layout.runs.iterdir()) == ["another", "m", "s0", "s1"]


def test_a_run_that_was_created_while_its_id_was_merged_into_stays(store: Store, shards: Shards) -> None:
    shards.write("s0", [0])

    class Meanwhile(Files):
        def make_folder(self, path: Path) -> None:
            super().make_folder(path)
            if not store.layout.run("m").document.exists():
                shards.write("m", [1])

    with pytest.raises(InputError, match="run m was created meanwhile"):
        merge_runs(store, ["s0"], "m", Meanwhile())
    assert shards.rows("select task_id from rollouts") == [("q1",)]


def test_plans_that_number_their_rollouts_differently_are_numbered_anew(
    store: Store, shards: Shards, build: Any
) -> None:
    for run_id, first, second in (("s0", 0, 1), ("s1", 1, 2)):
        plan = [build.planned(first), build.planned(second)]
        numbered = [row.model_copy(update={"plan_index": place, "task_index": place}) for place, row in enumerate(plan)]
        tasks = [
            build.task(index).model_copy(update={"task_index": place}) for place, index in enumerate((first, second))
        ]
        store.create_run(build.document(run_id), tasks, numbered)
    report = merge_runs(store, ["s1", "s0"], "m")
    assert (report.planned, report.incomplete) == (3, 3)
    assert shards.rows("select plan_index, task_index, task_id from plan order by all") == [
        (0, 0, "q0"),
        (1, 1, "q1"),
        (2, 2, "q2"),
    ]
