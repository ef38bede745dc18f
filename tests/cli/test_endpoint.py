"""An endpoint that dies or falls silent: the run waits, says so, and ends incomplete; nothing is scored zero; resume finishes it."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cli.live
from gymflow.store import connect
from tests.support.command import Gym
from tests.support.endpoint import RunningEndpoint, start_endpoint

RUN = ["eval", "run", "mcqa", "--limit", "20", "--repeats", "5", "--concurrency", "8", "--inline", "--json"]


@contextmanager
def dying(endpoint: RunningEndpoint, after: int) -> Iterator[None]:
    """End the endpoint's process once it has had so many requests."""

    def watch() -> None:
        while endpoint.stats()["requests"] < after:
            time.sleep(0.02)
        endpoint.process.terminate()

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield
    watcher.join()


def sampled(store: Path) -> set[tuple[str, str, float]]:
    with connect(store) as connection:
        rows = connection.execute(
            "select c.rollout_id, c.response_id, r.started_at from model_calls c join rollouts r using (rollout_id)"
        ).fetchall()
    return set(rows)


def test_a_run_outlives_its_endpoint(here: Gym, store: Path) -> None:  # rn-failure-threshold, rs-fewer-than-requested
    with start_endpoint(latency_ms=40, jitter_ms=40) as endpoint, dying(endpoint, after=30):
        arguments = ["--base-url", endpoint.url, "--model", "fake-model", "--set", "limits.unreachable_s=2"]
        ended = here(*RUN, *arguments)
    assert ended.code == 3 and "Traceback" not in ended.err
    assert "paused: model policy: " in ended.err and f"{endpoint.url} is unreachable" in ended.err
    assert re.search(r"gym: model 'policy' has been out of reach for 2 s", ended.err)
    [line] = ended.json[0]["lines"]
    assert 15 <= line["scored"] <= 30 and line["failed"] == 0
    assert line["missing"] == 100 - line["scored"]
    before = sampled(store)
    assert len(before) == line["scored"]
    tasks = here("show", "latest", "--json").json["tasks"]
    assert sum(task["missing"] for task in tasks) == line["missing"]

    with start_endpoint() as other:
        resumed = here("eval", "run", "--resume", "latest", "--base-url", other.url, "--inline", "--json")
        assert other.stats()["requests"] == line["missing"]
    assert resumed.code == 0
    [line] = resumed.json[0]["lines"]
    assert (line["scored"], line["missing"], line["failed"]) == (100, 0, 0)
    assert before < sampled(store)


def test_an_endpoint_that_never_comes_back_on_resume_is_said_and_nothing_changes(here: Gym, store: Path) -> None:
    with start_endpoint() as endpoint:
        arguments = ["--base-url", endpoint.url, "--model", "fake-model"]
        assert here("eval", "run", "mcqa", "--limit", "2", *arguments, "--inline").code == 0
    before = sampled(store)
    ended = here("eval", "run", "--resume", "latest", "--repeats", "2", "--inline")
    assert ended.code == 2 and "is unreachable" in ended.err
    assert sampled(store) == before and here("runs", "--json").json[0]["planned"] == 2


def test_one_request_that_is_never_answered_fails_alone(here: Gym) -> None:  # mc-silent-server
    with start_endpoint(silent_every=5) as endpoint:
        limits = ["models.policy.timeout_s=1", "models.policy.max_retries=0", "limits.max_attempts=1"]
        began = time.monotonic()
        ended = here(
            *("eval", "run", "mcqa", "--limit", "5", "--base-url", endpoint.url, "--model", "fake-model"),
            *(part for limit in limits for part in ("--set", limit)),
            *("--inline", "--json"),
        )
    assert time.monotonic() - began < 15
    assert ended.code == 3
    [line] = ended.json[0]["lines"]
    assert (line["scored"], line["failed"], [one["kind"] for one in line["failures"]]) == (4, 1, ["model_timeout"])


def test_an_overloaded_endpoint_costs_time_and_nothing_else(here: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.live, "QUIET_S", 0.3)
    with start_endpoint(error_rate=0.3, error_status=503, retry_after="0") as endpoint:
        ended = here(*RUN, "--repeats", "2", "--base-url", endpoint.url, "--model", "fake-model")
        stats = endpoint.stats()
    [line] = ended.json[0]["lines"]
    assert ended.code == 0 and (line["scored"], line["failed"]) == (40, 0)
    line_now_and_then = r"\d\d:\d\d:\d\d  \d+/40 rollouts  \d running .* tok/s  left "
    assert re.search(line_now_and_then, ended.err) and "\x1b" not in ended.err
    assert stats["errors"] > 10 and stats["requests"] == 40 + stats["errors"]


def test_an_endpoint_that_says_not_before_tomorrow_is_told_of_and_fails_what_was_asked(here: Gym) -> None:
    with start_endpoint() as endpoint:
        endpoint.control(error_rate=1, error_status=429, retry_after="86400")
        began = time.monotonic()
        ended = here(
            *("eval", "run", "mcqa", "--limit", "3", "--base-url", endpoint.url, "--model", "fake-model"),
            *("--set", "models.policy.timeout_s=10", "--inline", "--json"),
        )
    assert ended.code == 3 and time.monotonic() - began < 60
    assert f"paused: model policy: {endpoint.url} answered 429" in ended.err
    [line] = ended.json[0]["lines"]
    assert (line["scored"], line["failed"], [one["kind"] for one in line["failures"]]) == (0, 3, ["model_rate_limited"])
