"""Ctrl-C: what is running may finish, then the run ends with 130, nothing is left behind, and it can be resumed."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Process, Terminal, descendants
from tests.support.command import Gym
from tests.support.endpoint import RunningEndpoint, start_endpoint

MATH = ["math_word", "--limit", "20", "--repeats", "10", "--concurrency", "8", "--inline"]


@pytest.fixture
def endpoint() -> Iterator[RunningEndpoint]:
    algebra = "\\\\boxed{x^2 + \\\\sqrt{2} y}"  # sent to the verifier's own processes
    with start_endpoint(text=algebra, latency_ms=200, jitter_ms=100, error_rate=0.15) as endpoint:
        yield endpoint


def model(endpoint: RunningEndpoint) -> list[str]:
    # One attempt a rollout, so that some fail and the number of requests is the number of rollouts.
    once = ["--set", "models.policy.max_retries=0", "--set", "limits.max_attempts=1"]
    return ["--base-url", endpoint.url, "--model", "fake-model", *once]


def test_a_run_on_a_terminal_is_watched_and_interrupted(
    terminal: Callable[..., Terminal], endpoint: RunningEndpoint, here: Gym
) -> None:  # mc-cancel-clean
    screen = terminal("eval", "run", *MATH, *model(endpoint), columns=80)
    screen.until(re.compile(r"reward \d\.\d{3} ± \d\.\d{3}").search)
    screen.until(re.compile(r"[1-9]\d* model_error").search)
    shown = screen.text
    assert re.search(r"gym: run math-word-\S+: 200 rollouts\n", shown)
    assert re.search(r"[1-9]\d*/200 +8 running +[1-9]\d* tok/s +\d+:\d\d +left \d+:\d\d", shown)
    children = descendants(screen.pid)
    assert children  # the verifier's own processes, which the terminal's signal must not reach
    began = time.monotonic()
    screen.type("\x03")
    assert screen.wait() == 130
    assert time.monotonic() - began < 10
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert "finishing what is running (Ctrl-C again to leave at once)" in screen.text
    assert "Traceback" not in screen.text and "rollouts are missing" in screen.text

    listed = here("runs", "--json").json[0]
    assert listed["scored"] and listed["missing"] and not listed["unverified"] and not listed["being_written"]
    assert endpoint.stats()["requests"] == listed["scored"] + listed["failed"]
    endpoint.control(latency_ms=0, jitter_ms=0, error_rate=0)
    resumed = here("eval", "run", "--resume", "latest", "--inline", "--json")
    assert resumed.code == 0 and resumed.json[0]["lines"][0]["scored"] == 200
    assert f"{listed['scored']} of them durable already" in resumed.err
    assert endpoint.stats()["requests"] == 200 + listed["failed"]


@pytest.mark.slow
def test_what_does_not_finish_is_given_up_within_ten_seconds(spawn: Callable[..., Process], here: Gym) -> None:
    with start_endpoint(silent_every=1) as silent:
        running = spawn("eval", "run", "mcqa", "--limit", "20", "--inline", *model(silent))
        _until(lambda: silent.stats()["requests"] >= 20)
        began = time.monotonic()
        running.interrupt()
        code, _, err = running.wait()
    assert code == 130 and 4 < time.monotonic() - began < 10
    assert "Traceback" not in err
    listed = here("runs", "--json").json[0]
    assert (listed["missing"], listed["failed"]) == (20, 0)


@pytest.mark.slow
def test_a_second_interrupt_leaves_at_once(spawn: Callable[..., Process], here: Gym) -> None:
    with start_endpoint(silent_every=3, latency_ms=20) as silent:
        running = spawn("eval", "run", "mcqa", "--limit", "20", "--inline", *model(silent))
        _until(lambda: silent.stats()["requests"] >= 20)
        time.sleep(0.5)
        running.interrupt()
        time.sleep(0.5)
        assert running.process.poll() is None
        assert here("runs").out.split("\t")[1] == "being written"
        began = time.monotonic()
        running.interrupt()
        code, _, err = running.wait()
    assert code == 130 and time.monotonic() - began < 3
    assert "Traceback" not in err
    listed = here("runs", "--json").json[0]
    assert (listed["scored"], listed["missing"]) == (14, 6)  # what was acknowledged is durable


def _until(holds: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
