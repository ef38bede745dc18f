"""Processes that help where computing verdicts takes long: the same verdicts, whatever becomes of the processes."""

import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows.reverify import reverify
from gymflow.registry import Registry
from gymflow.runtime import completing, verdict_pool
from gymflow.runtime.rejudging import Change, environments_of
from gymflow.runtime.verdict_pool import Batch, Order, Pace, VerdictPool, judged_digests
from gymflow.store import Store, connect
from gymflow.store.files import alive
from tests.support.environments import VERIFIER, write_environment
from tests.support.runs import scripted

LENIENT = {"mode": "lenient"}
RULES = [{"matches": "water", "text": "I go with (B)."}, {"text": "Vielleicht ‹ß›, maybe (A)."}]
JUDGED = (
    "select rollout_id, verdict_set, verdict_key, reward, passed, extracted_answer, reason, components, details, failure,"
    " failure_message, verifier, code_digest, parameter_digest, flags from verdicts order by all"
)
PATIENCE_S = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def health() -> bool:
    """No test here is about the examination of a run."""
    return False


@pytest.fixture(autouse=True)
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many cores there are."""
    monkeypatch.setattr(verdict_pool, "SIZE", 2)


@pytest.fixture
async def stored(run) -> None:
    """A run `r` of 200 rollouts."""
    await run(scripted(environments=[{"name": "mcqa", "limit": 20}], repeats=10, rules=RULES))


def order_of(store: Path) -> tuple[Order, dict[str, str]]:
    """What processes are told to rescore run `r`, and by what it is to be judged."""
    change = Change(LENIENT)
    environments, _ = environments_of(Registry(), Store(store).document("r"), change, None, None)
    return Order(store, "r", (), change, None, "anew", 60.0), judged_digests(environments)


def wait_until_ready(pool: VerdictPool) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not all(worker.ready for worker in pool._workers):
        assert time.monotonic() < deadline and all(worker.is_alive() for worker in pool._workers)
        time.sleep(0.02)


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch, two_processes: None) -> list[VerdictPool]:
    """Rescorings start their processes at once and wait for them; the pools that were made."""
    made: list[VerdictPool] = []

    def ready(order: Order, judged: dict[str, str]) -> VerdictPool:
        made.append(VerdictPool(order, judged))
        wait_until_ready(made[-1])
        return made[-1]

    monkeypatch.setattr(verdict_pool, "WORTH_S", 0.0)
    monkeypatch.setattr(completing, "STORED_AT_ONCE", 20)
    monkeypatch.setattr(completing, "VerdictPool", ready)
    monkeypatch.setattr(Pace, "computing", True)
    return made


async def test_processes_give_the_verdicts_that_this_one_would(stored, store, rows, helped, monkeypatch, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    helping = await reverify("r", LENIENT, str(store))
    (pool,) = helped
    assert not any(worker.is_alive() for worker in pool._workers)
    monkeypatch.setattr(Pace, "computing", False)
    alone = await reverify("r", LENIENT, str(copy))
    assert helping.scored == alone.scored == 200 and len(helped) == 1
    with connect(copy) as connection:
        assert rows(JUDGED) == connection.execute(JUDGED).fetchall()
    assert len(rows(JUDGED)) == 400


async def test_a_verifier_of_ones_own_may_print(run, store, helped, tmp_path, capfd):
    code = VERIFIER.replace(
        "        said, wanted", "        print('heard', evidence.final_text)\n        said, wanted", 1
    )
    folder = write_environment(tmp_path / "fish", code=code)
    await run(scripted(environments=[{"name": str(folder)}], repeats=30, rules=[{"text": "Yes"}]))
    report = await reverify("r", {"strict": False}, str(store))
    assert len(helped) == 1 and report.scored == 60
    assert capfd.readouterr().err.count("heard Yes") > 0


async def test_what_a_killed_process_had_is_scored_all_the_same(stored, store, rows, helped, monkeypatch):
    take = VerdictPool.take

    def killing(pool: VerdictPool, batch: Batch) -> bool:
        taken = take(pool, batch)
        for worker in pool._workers:
            worker._process.kill()
        return taken

    monkeypatch.setattr(VerdictPool, "take", killing)
    report = await reverify("r", LENIENT, str(store))
    assert (report.scored, len(helped)) == (200, 1)
    assert rows("select count(*), count(distinct rollout_id), count(distinct verdict_set) from verdicts") == [
        (400, 200, 2)
    ]


async def test_a_machine_that_gives_fewer_processes_does_it_with_those(
    stored, store, rows, helped, monkeypatch, caplog
):
    started = subprocess.Popen
    left = iter([started])

    def refusing(*arguments, **options):
        for start in left:
            return start(*arguments, **options)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(verdict_pool, "subprocess", SimpleNamespace(Popen=refusing, PIPE=subprocess.PIPE))
    report = await reverify("r", LENIENT, str(store))
    (pool,) = helped
    assert report.scored == 200 and len(pool._workers) == 1
    assert "verdicts are computed by 2 processes" in caplog.text


async def test_a_verifier_whose_code_changed_meanwhile_is_not_asked(stored, store, caplog):
    order, judged = order_of(store)
    pool = VerdictPool(order, dict.fromkeys(judged, "0" * 64))
    for worker in pool._workers:
        worker.join(PATIENCE_S)
    assert not any(worker.ready for worker in pool._workers) and "has changed meanwhile" in caplog.text
    pool.close()


async def test_a_rescoring_that_is_killed_leaves_no_process(stored, store, tmp_path):
    code = f"""
import time
from tests.flows.test_verdict_pool import order_of, wait_until_ready
from gymflow.runtime import verdict_pool
from pathlib import Path
verdict_pool.SIZE = 2
pool = verdict_pool.VerdictPool(*order_of(Path({str(store)!r})))
wait_until_ready(pool)
print(*(worker._process.pid for worker in pool._workers), flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while any(alive(pid) for pid in pids):
        assert pids and time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("cpu_s", "wall_s", "left", "helps"),
    [
        (0.05, 0.06, 100_000, True),
        (0.05, 0.06, 40_000, False),  # done before a process would be there
        (0.01, 0.06, 10_000_000, False),  # it waits: for other processes, a sandbox, a core
        (0.05, 0.06, 0, False),
    ],
)
def test_processes_are_started_only_where_computing_takes_long(cpu_s, wall_s, left, helps, monkeypatch):
    clock = SimpleNamespace(now=0.0, used=0.0)
    monkeypatch.setattr(
        verdict_pool, "time", SimpleNamespace(monotonic=lambda: clock.now, thread_time=lambda: clock.used)
    )
    pace = Pace(500 + left)
    assert not pace.computing
    clock.now, clock.used = wall_s, cpu_s
    pace.count(500)
    assert pace.computing == helps
