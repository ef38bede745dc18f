"""Real SIGKILLs at random moments of `gym eval run`: what was durable stays, is whole, and is never sampled again."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gymflow.store import Store, connect
from tests.cli.conftest import Process
from tests.support.command import Gym
from tests.support.endpoint import RunningEndpoint, start_endpoint

KILLS = 20
TASKS = 30
CONCURRENCY = 8
IN_HAND = CONCURRENCY + CONCURRENCY // 3 + 1
"""Rollouts that are sampled or on their way to the disk at one time."""


@dataclass(frozen=True)
class Held:
    """What the store holds of the run: rollout id -> (rollout key, sampled at, response id, evidence digest, reward)."""

    rows: dict[str, tuple[object, ...]]


def held(store: Path) -> Held:
    """Read everything, bodies included: a torn row would not come out."""
    with connect(store) as connection:
        rows = connection.execute(
            """
            select r.rollout_id, r.rollout_key, r.started_at, c.response_id, r.evidence_digest, v.reward, length(e.response)
            from rollouts r
            join model_calls c using (run_id, rollout_id)
            join evidence e using (run_id, rollout_id)
            join verdicts v using (run_id, rollout_id)
            """
        ).fetchall()
        counted = connection.execute("select count(*), count(distinct rollout_id) from rollouts").fetchone()
    by_id = {row[0]: tuple(row[1:]) for row in rows}
    assert counted == (len(rows), len(by_id)), "a rollout is there twice, or not whole"
    assert len({row[2] for row in by_id.values()}) == len(by_id), "two rollouts came from one answer"
    assert all(row[4] is not None for row in by_id.values())
    return Held(by_id)


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_repeat_nothing(
    spawn: Callable[..., Process], here: Gym, store: Path, record_property: Callable[[str, object], None]
) -> None:  # rs-sigkill-is-resumable, rs-append-after-torn, rs-durable-before-complete
    seed = random.randrange(2**32)
    record_property("seed", seed)
    chance = random.Random(seed)
    repeats = 4
    before = Held({})
    resampled = 0
    with start_endpoint(latency_ms=60, jitter_ms=60) as endpoint:
        model = ["--base-url", endpoint.url, "--model", "fake-model", "--concurrency", str(CONCURRENCY), "--inline"]
        started = ["eval", "run", "mcqa", "--limit", str(TASKS), "--repeats", str(repeats), *model]
        for kill in range(KILLS):
            requests = endpoint.stats()["requests"]
            running = spawn(*started)
            _kill_somewhen(running, endpoint, requests, TASKS * repeats - len(before.rows), chance)
            asked = endpoint.stats()["requests"] - requests
            runs = Store(store).runs()
            if not runs:  # killed before there was a plan; nothing was asked of the model either
                assert asked == 0
                continue
            reader = Store(store).run("latest")
            now = held(store)
            assert before.rows.items() <= now.rows.items(), f"seed {seed}, kill {kill}: durable rollouts changed"
            lost = asked - (len(now.rows) - len(before.rows))
            assert 0 <= lost <= IN_HAND, f"seed {seed}, kill {kill}: {lost} answers were lost"
            resampled += lost
            assert set(reader.completed()) == {int(name.rpartition("-")[2]) for name in now.rows}
            before = now
            repeats += 2 if len(before.rows) >= TASKS * repeats * 0.6 else 0
            started = ["eval", "run", "--resume", "latest", "--repeats", str(repeats), "--inline"]
        code, _, err = spawn(*started, "--json").wait(timeout=120)
        total = endpoint.stats()["requests"]
    assert code == 0, err
    after = held(store)
    assert before.rows.items() <= after.rows.items()
    planned = here("runs", "--json").json[0]
    assert (planned["scored"], planned["missing"], planned["failed"]) == (TASKS * repeats, 0, 0)
    assert len(after.rows) == TASKS * repeats == total - resampled
    assert len(before.rows) > TASKS, "the kills came too early to prove anything"


def _kill_somewhen(
    running: Process, endpoint: RunningEndpoint, requests: int, expected: int, chance: random.Random
) -> None:
    """Kill while the command starts, while it plays, or while it ends."""
    phase = chance.choice(["starting", "playing", "playing", "playing", "ending"])
    awaited = {"starting": 0, "playing": chance.randint(1, max(expected - 1, 1)), "ending": expected}[phase]
    while running.process.poll() is None and endpoint.stats()["requests"] - requests < awaited:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 4.0 if phase == "starting" else 0.4))
    running.kill()
    running.process.communicate()
