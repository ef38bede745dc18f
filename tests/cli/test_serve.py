"""`gym serve`: the gateway for programs that gymflow does not run, and the run that keeps what they asked."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anthropic
import openai
import orjson
import pytest

from tests.cli.conftest import Process
from tests.support.command import Gym
from tests.support.endpoint import RunningEndpoint, start_endpoint


@pytest.fixture
def endpoint() -> Iterator[RunningEndpoint]:
    with start_endpoint(text="seven", tool_turns=1) as endpoint:
        yield endpoint


class Served:
    """A `gym serve` that runs, and the clients of it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        assert process.process.stdout is not None
        line = process.process.stdout.readline()
        assert line, process.wait()
        self.told = orjson.loads(line)
        self.openai = openai.OpenAI(base_url=self.told["base_url"], api_key="any", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=self.told["anthropic_base_url"], api_key="any", max_retries=0)


def test_any_client_is_served_and_every_conversation_kept(
    spawn: Callable[..., Process],
    here: Gym,
    store: Path,
    endpoint: RunningEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODEL_KEY", "the-real-key-of-the-model")
    arguments = ["--base-url", endpoint.url, "--api-key-env", "MODEL_KEY", "--json"]
    served = Served(spawn("serve", "fake-model", *arguments))
    assert served.told["base_url"] == f"{served.told['address']}/rollouts/{served.told['token']}/v1"
    assert [model.id for model in served.openai.models.list()] == ["fake-model"]

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "add", "parameters": schema}}
    messages: list = [{"role": "user", "content": "3 + 4?"}]
    first = served.openai.chat.completions.create(model="m", messages=messages, tools=[tool]).choices[0].message
    call = first.tool_calls[0]
    messages += [first.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "7"}]
    last = served.openai.chat.completions.create(model="m", messages=messages, tools=[tool])
    assert last.choices[0].message.content == "seven"
    assert served.openai.responses.create(model="m", input="4 + 3?").output_text == "seven"
    with served.anthropic.messages.stream(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "the-real-key-of-the-model"}]
    ) as stream:
        assert stream.get_final_text() == "seven"

    served.process.interrupt()
    code, _, err = served.process.wait()
    assert code == 0 and f"3 conversations in run {served.told['run_id']}" in err
    rows = here("sql", "select rollout_id, model_calls, tool_calls, status from rollouts order by 1", "--json").json
    assert [(row["model_calls"], row["tool_calls"], row["status"]) for row in rows] == [
        (2, 1, "completed"),
        (1, 0, "completed"),
        (1, 0, "completed"),
    ]
    parents = here(
        "sql", "select parent, json_array_length(new_input) as new from model_calls order by rollout_id, call", "--json"
    ).json
    assert parents[:2] == [{"parent": None, "new": 1}, {"parent": 0, "new": 1}]
    tools = here("sql", "select name, output, status from tool_calls", "--json").json
    assert tools == [{"name": "add", "output": "7", "status": "ok"}]
    stored = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert b"the-real-key" not in stored
    shown = here("show", served.told["run_id"])
    assert shown.code == 0 and "served" in shown.out
    assert here("eval", "run", "--resume", served.told["run_id"], "--inline").code == 2


def test_what_one_caller_gets_wrong_is_no_others_concern(
    spawn: Callable[..., Process], here: Gym, endpoint: RunningEndpoint
) -> None:
    served = Served(spawn("serve", "fake-model", "--base-url", endpoint.url, "--json"))
    assert served.openai.responses.create(model="m", input="one").output_text == "seven"
    for wrong in ({"instructions": 5}, {"tools": {"a": 1}}, {"text": 5}, {"reasoning": "high"}):
        with pytest.raises(openai.BadRequestError):
            served.openai.responses.create(model="m", input="hi", extra_body=wrong)
    endpoint.control(error_rate=1, error_status=404)
    for _ in range(9):
        with pytest.raises(openai.NotFoundError):
            served.openai.responses.create(model="m", input="for what is not there")
    endpoint.control(error_rate=0)
    assert served.openai.responses.create(model="m", input="two").output_text == "seven"
    served.process.interrupt()
    code, _, err = served.process.wait()
    assert code == 0 and "11 conversations in run" in err
    rows = here("sql", "select status, count(*) as n from rollouts group by 1 order by 1", "--json").json
    assert rows == [{"status": "completed", "n": 2}, {"status": "failed", "n": 9}]


def test_ctrl_c_finishes_the_calls_under_way(spawn: Callable[..., Process], here: Gym) -> None:
    with start_endpoint(text="late", latency_ms=1000) as endpoint:
        served = Served(spawn("serve", "fake-model", "--base-url", endpoint.url, "--json"))
        said: list[str] = []
        caller = threading.Thread(
            target=lambda: said.append(served.openai.responses.create(model="m", input="q").output_text)
        )
        caller.start()
        while not endpoint.stats()["in_flight"]:
            time.sleep(0.02)
        served.process.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        with pytest.raises(openai.APIError):
            served.openai.responses.create(model="m", input="too late")
        code, _, err = served.process.wait()
        caller.join()
    assert (code, said) == (0, ["late"])
    assert "1 conversations in run" in err
    assert here("sql", "select status from rollouts", "--json").json == [{"status": "completed"}]


def test_what_cannot_be_served_is_said_at_once(here: Gym, unused_tcp_port: int, endpoint: RunningEndpoint) -> None:
    ended = here("serve", "fake-model", "--base-url", f"http://127.0.0.1:{unused_tcp_port}/v1")
    assert ended.code == 2 and "is unreachable" in ended.err
    assert here("serve", "openai2:x").code == 2
    taken = endpoint.url.rpartition(":")[2].partition("/")[0]
    ended = here("serve", "fake-model", "--base-url", endpoint.url, "--port", taken)
    assert ended.code == 2 and f"cannot listen on 127.0.0.1:{taken}" in ended.err
