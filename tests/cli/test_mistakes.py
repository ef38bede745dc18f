"""A user's mistake ends `gym eval` with exit code 2 and one message that says what to do; nothing is written."""

import time
from pathlib import Path

import pytest

from tests.support.command import Gym
from tests.support.endpoint import start_endpoint

REFUSED = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torn.yaml").write_text("environments: [mcqa\n  - x")
    Path("bytes.yaml").write_bytes(b"environments: [\xff]")
    Path("typo.yaml").write_text("environments:\n  - name: mcqa\ntemprature: 0.2\n")
    Path("half.yaml").write_text('environments: [{name: mcqa}]\nname: "half \\ud800"\n')
    Path("list.yaml").write_text("- mcqa\n")
    Path("file").write_text("not a store")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mcqq", "did you mean mcqa?"),
        ("mcqa --benchmark mcqa-4", "did you mean mcqa-4x?"),
        ("mcqa --harness singel_turn", "did you mean single_turn?"),
        ("mcqa --split tset", "did you mean test?"),
        ("mcqa --task nope", "has no task nope"),
        ("mcqa --set limits.concurency=3", "concurrency"),
        ("mcqa --set repeats=zero", "repeats"),
        ("mcqa --set verifier.mood=x", "mood"),
        ("mcqa --set nothing", "key=value"),
        ("mcqa --vary sampling.temperature", "--vary sampling.temperature"),
        ("mcqa --reuse sometimes", "reuse"),
        ("mcqa --shard 4/4", "--shard 4/4"),
        ("mcqa --temperature hot", "temperature"),
        ("mcqa --bogus", "--bogus"),
        ("mcqa --model m --set models.policy.api_key=sk-abcdefghijk", "models.policy.api_key: a secret is written out"),
        ("mcqa --base-url http://127.0.0.1:9/v1 --model m --api-key-env NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ("", "name at least one environment"),
        ("--config nowhere.yaml", "nowhere.yaml"),
        ("--config torn.yaml", "torn.yaml:2"),
        ("--config bytes.yaml", "bytes.yaml: not UTF-8 at byte 15"),
        ("--config typo.yaml", "typo.yaml:3: temprature: unknown key; did you mean sampling.temperature?"),
        ("--config list.yaml", "list.yaml"),
        ("--config half.yaml", "half.yaml:1: a lone surrogate, half of a character, in name"),
        ('mcqa --set name="\\ud800"', "a lone surrogate, half of a character, in name"),
        ("mcqa --set name=\udcff", "argument 5 is not UTF-8"),
        ("--resume nope", "no run 'nope'"),
        ("mcqa --limit 1 --store file", "Not a directory"),
        ("mcqa --limit 1 --store /proc/no", "the run could not be created"),
        ("mcqa --limit 1 --store gs://bucket/prefix", "gs://"),
    ],
)
def test_one_message_and_nothing_written(here: Gym, store: Path, arguments: str, message: str) -> None:
    ended = here("eval", "run", *arguments.split(), "--inline")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err
    assert not store.exists()


def test_an_unreachable_endpoint_is_said_at_once(here: Gym, store: Path) -> None:  # mc-refused-port
    began = time.monotonic()
    ended = here("eval", "run", "mcqa", "--base-url", REFUSED, "--model", "m", "--inline")
    assert time.monotonic() - began < 5
    assert ended.code == 2 and not store.exists()
    assert f"model 'policy': {REFUSED} is unreachable" in ended.err and "refused" in ended.err


def test_a_refused_key_is_said_in_the_endpoints_words(here: Gym, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-wrong-wrong-wrong")
    with start_endpoint(api_key="sk-right") as endpoint:
        ended = here(
            "eval", "run", "mcqa", "--base-url", endpoint.url, "--model", "m", "--api-key-env", "MY_KEY", "--inline"
        )
        assert endpoint.stats()["requests"] == 0
    assert ended.code == 2 and not store.exists()
    assert "Incorrect API key provided." in ended.err and "sk-wrong" not in ended.err


def test_another_server_than_the_configured_one_is_not_used(gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")  # Prefect reads it when it is imported
    ended = gym("eval", "run", "mcqa", "--limit", "1")
    assert ended.code == 2 and "--inline" in ended.err and "http://127.0.0.1:9/api" in ended.err
