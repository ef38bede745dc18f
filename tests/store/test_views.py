"""The views: the same answers from journal and parts, outcomes by the book, sequences of equal length."""

import asyncio
from typing import Any

import duckdb
import orjson
import pytest

from gymflow.contracts.outcome import Status
from gymflow.contracts.plan import PlannedRollout, PlannedTask
from gymflow.contracts.rollout import Attempt, EvidenceRecord, Rollout
from gymflow.contracts.trajectory import CallTokens, ModelCall, Usage
from gymflow.contracts.verdict import Judged, Verdict, VerdictRecord
from gymflow.errors import InputError
from gymflow.store import Store, connect
from gymflow.store.plan import PLAN, TASKS
from gymflow.store.tables import SCHEMAS

VIEWS = (
    *("plan", "tasks", "rollouts", "attempts", "evidence", "model_calls", "turns", "tool_calls"),
    *("tokens", "verdict_sets", "verdicts", "outcomes", "findings", "runs"),
)


async def sampled(store: Store, build: Any, finish: bool) -> None:
    """Six planned: 0–2 scored, 3 without a verdict, 4 failed, 5 missing."""
    build.run(store, "r", 6)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set())
        await writer.commit(build.record("r", 2, status=Status.FAILED))
        for index in range(3):
            await writer.commit(build.record("r", index), [build.verdict("r", index, reward=index / 2)])
        await writer.commit(build.record("r", 3), [build.verdict("r", 3, reward=None)])
        await writer.commit(build.record("r", 4, status=Status.FAILED))
        if finish:
            await writer.finish()


def everything(store: Store, runs: list[str] | None = None) -> dict[str, list[str]]:
    with connect(store.root, runs) as connection:
        return {view: sorted(map(repr, connection.execute(f"from {view}").fetchall())) for view in VIEWS}


def test_every_view_answers_on_a_store_without_runs(store: Store) -> None:
    assert everything(store) == {view: [] for view in VIEWS}


async def test_views_are_the_same_before_and_after_conversion(store: Store, build: Any) -> None:
    await sampled(store, build, finish=False)
    journalled = everything(store)
    assert [view for view in VIEWS if not journalled[view]] == ["findings"]
    async with store.writer("r") as writer:
        await writer.finish()
    assert everything(store) == journalled
    async with store.writer("r") as writer:
        await writer.finish()
    assert everything(store) == journalled


@pytest.mark.parametrize("finish", [False, True])
async def test_outcomes_and_run_counts(store: Store, build: Any, finish: bool) -> None:
    await sampled(store, build, finish)
    with connect(store.root) as connection:
        outcomes = connection.execute(
            "select plan_index, rollout_id, status, outcome, reward, passed, verdict_failure from outcomes order by 1"
        ).fetchall()
        counts = connection.execute(
            "select planned, completed, failed, missing, current_verdict_set from runs"
        ).fetchall()
    assert outcomes == [
        (0, "r-0", "completed", "scored", 0.0, False, None),
        (1, "r-1", "completed", "scored", 0.5, False, None),
        (2, "r-2", "completed", "scored", 1.0, True, None),
        (3, "r-3", "completed", "unverified", None, None, "verifier_error"),
        (4, "r-4", "failed", "failed", None, None, None),
        (5, "r-5", None, "missing", None, None, None),
    ]
    assert counts == [(6, 4, 1, 1, "first")]


async def test_rs_fewer_than_requested(store: Store, build: Any) -> None:
    build.run(store, "r", 16)
    async with store.writer("r") as writer:
        for index in range(11):
            await writer.commit(build.record("r", index))
    with connect(store.root) as connection:
        missing = connection.execute("select plan_index from outcomes where outcome = 'missing' order by 1").fetchall()
        assert connection.execute("select completed, missing from runs").fetchall() == [(11, 5)]
    assert missing == [(index,) for index in range(11, 16)]
    assert [row.plan_index for row in store.run("r").pending()] == list(range(11, 16))


async def test_a_set_that_refers_to_another_is_complete(store: Store, build: Any) -> None:
    await sampled(store, build, finish=True)
    async with store.writer("r") as writer:
        await writer.add_verdict_set(build.verdict_set("second", refers_to="first"))
        await writer.commit_verdicts([build.verdict("r", 3, reward=1.0, verdict_set="second")])
        await writer.add_verdict_set(build.verdict_set("third", refers_to="second"))
        await writer.commit_verdicts([build.verdict("r", 0, reward=1.0, verdict_set="third")])
    with connect(store.root) as connection:
        rows = connection.execute(
            "select rollout_id, reward, judged_in from verdicts where verdict_set = 'third' order by 1"
        ).fetchall()
        scored = connection.execute(
            "select verdict_set, is_current, count(*) from outcomes where outcome = 'scored' group by all order by 1"
        ).fetchall()
    assert rows == [("r-0", 1.0, "third"), ("r-1", 0.5, "first"), ("r-2", 1.0, "first"), ("r-3", 1.0, "second")]
    assert scored == [("first", False, 3), ("second", False, 4), ("third", True, 4)]


async def test_io_summary_without_bodies(store: Store, build: Any) -> None:
    """Listing, outcomes and resume answer though no body can be read: they never look at one."""
    await sampled(store, build, finish=True)
    for table in ("evidence", "model_calls", "tokens"):
        for path in store.layout.run("r").folder.glob(f"parts/{table}/*"):
            data = path.read_bytes()
            footer = int.from_bytes(data[-8:-4], "little") + 8
            path.write_bytes(b"PAR1" + b"\xff" * (len(data) - footer - 4) + data[-footer:])
    with connect(store.root) as connection:
        assert connection.execute("select completed from runs").fetchall() == [(4,)]
        assert connection.execute("select avg(reward), count(*) from outcomes").fetchall() == [(0.5, 6)]
        with pytest.raises(duckdb.Error):
            connection.execute("select trajectory from evidence").fetchall()
    assert len(store.run("r").completed()) == 5


async def test_turns_and_tool_calls_are_projections_of_the_trajectory(store: Store, build: Any) -> None:
    await sampled(store, build, finish=True)
    with connect(store.root) as connection:
        turns = connection.execute(
            "select turn, call, tool_calls, step_reward, done, truncated from turns where rollout_id = 'r-0'"
        ).fetchall()
        calls = connection.execute(
            "select turn, position, call_id, name, arguments, output, status, duration_s from tool_calls where rollout_id = 'r-0'"
        ).fetchall()
    assert turns == [(0, 0, 1, 0.5, True, False)]
    assert calls == [(0, 0, "c0", "look", '{"at": 1}', "seen", "ok", 0.5)]


def call(index: int, parent: int | None, *, chained: bool, role: str = "policy") -> ModelCall:
    """Two new prompt tokens (10·index + 1, 2) and two sampled ones (10·index + 3, 4)."""
    first = 10 * index
    return ModelCall(
        index=index,
        parent=parent,
        role=role,
        new_input=[],
        model="m",
        started_at=1.0,
        tokens=CallTokens(
            chained=chained,
            prompt_token_ids=[first + 1, first + 2],
            completion_token_ids=[first + 3, first + 4],
            logprobs=[-0.1, None],
        ),
    )


async def test_token_sequences_have_equal_lengths_and_count_no_sampled_token_twice(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    calls = [
        call(0, None, chained=False),
        call(1, 0, chained=True),
        call(2, 0, chained=True),  # a second branch from the first call
        call(3, 2, chained=False),  # its prompt did not go on where call 2 ended
        call(4, None, chained=False, role="user"),
    ]
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0, calls=calls))
    with connect(store.root) as connection:
        rows = connection.execute(
            "select sequence, calls, token_ids, logprobs, loss_mask, role from tokens order by sequence"
        ).fetchall()
    assert [(row[0], row[1], row[5]) for row in rows] == [
        (1, [0, 1], "policy"),
        (2, [0, 2], "policy"),
        (3, [3], "policy"),
        (4, [4], "user"),
    ]
    assert rows[0][2] == [1, 2, 3, 4, 11, 12, 13, 14]
    assert rows[0][3] == [None, None, -0.1, None, None, None, -0.1, None]
    assert [row[4] for row in rows] == [
        [0, 0, 1, 1, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 1, 1],
        [0, 0, 1, 1],
        [0, 0, 0, 0],
    ]
    assert all(len(row[2]) == len(row[3]) == len(row[4]) for row in rows)


async def test_findings_come_from_the_health_reports(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    finding = {"run_id": "r", "check": "truncated", "severity": "warning", "rollout_id": "r-0", "message": "cut"}
    reports = store.layout.run("r").reports
    reports.mkdir()
    (reports / "health-first.json").write_bytes(orjson.dumps({"findings": [finding]}))
    with connect(store.root) as connection:
        rows = connection.execute(
            'select run_id, "check", severity, rollout_id, task_key, message from findings'
        ).fetchall()
    assert rows == [("r", "truncated", "warning", "r-0", None, "cut")]


async def test_views_can_be_limited_to_runs_by_name(store: Store, build: Any) -> None:
    for run_id in ("alpha", "beta"):
        build.run(store, run_id, 2)
    with connect(store.root, ["al"]) as connection:
        assert connection.execute("select distinct run_id from outcomes").fetchall() == [("alpha",)]
    with pytest.raises(InputError, match="did you mean alpha"):
        connect(store.root, ["alhpa"])


async def test_a_run_that_goes_on_can_be_read_at_any_moment(store: Store, build: Any) -> None:
    """Readers race with commits, conversions and merges, and always see what was acknowledged before they looked, once."""
    count = 60
    build.run(store, "r", count)
    done: list[int] = []
    finished = False

    async def write() -> None:
        nonlocal finished
        async with store.writer("r") as writer:
            for index in range(count):
                await writer.commit(build.record("r", index))
                done.append(index)
                if index % 10 == 9:
                    await writer.roll()
                if index % 30 == 29:
                    await writer.finish()
        finished = True

    async def read() -> int:
        looks = 0
        while not finished:
            before = len(done)
            reader = store.run("r")
            completed = await asyncio.to_thread(reader.completed)
            assert len(completed) >= before
            bodies = [stored.plan_index for batch in await asyncio.to_thread(list, reader.stored()) for stored in batch]
            assert len(bodies) == len(set(bodies)) >= before
            looks += 1
        return looks

    _, *looks = await asyncio.gather(write(), read(), read())
    assert min(looks) > 3


@pytest.mark.parametrize(
    ("contract", "columns", "elsewhere"),
    [
        (Rollout, SCHEMAS["rollouts"].names, {"usage"}),
        (Attempt, SCHEMAS["attempts"].names, set()),
        (EvidenceRecord, SCHEMAS["evidence"].names, set()),
        (ModelCall, SCHEMAS["model_calls"].names, {"index", "usage", "tokens"}),
        (Usage, SCHEMAS["rollouts"].names, set()),
        (Usage, SCHEMAS["model_calls"].names, set()),
        (CallTokens, SCHEMAS["tokens"].names, set()),
        (Verdict, SCHEMAS["verdicts"].names, set()),
        (VerdictRecord, SCHEMAS["verdicts"].names, {"verdict", "judged"}),
        (Judged, SCHEMAS["verdicts"].names, {"version"}),
        (PlannedRollout, PLAN.names, set()),
        (PlannedTask, TASKS.names, set()),
    ],
)
def test_no_field_of_a_contract_is_lost_on_its_way_into_a_table(
    contract: Any, columns: list[str], elsewhere: set[str]
) -> None:
    assert set(contract.model_fields) - elsewhere <= set(columns)
