"""Codex, Claude Code and Pi as they are installed, each in a sandbox, on a scripted model."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymflow.collecting import collect
from gymflow.contracts.agent import AgentSpec, ComponentRef
from gymflow.contracts.model import ModelSpec, Sampling
from gymflow.contracts.outcome import FailureKind, Status, StopReason
from gymflow.contracts.run import EnvironmentSelection
from gymflow.contracts.trajectory import Trajectory
from gymflow.store import Store
from tests.support.endpoint import start_endpoint

from .conftest import CACHE, HARNESSES, USAGE, shell

pytestmark = pytest.mark.harness

SEARCH = {"name": "mcp__gym__search_mail", "arguments": {"sender": "amara.jansen@northfield.example"}}
NOBODY = {"name": "mcp__gym__search_mail", "arguments": {"sender": "nobody@northfield.example"}}
REPLY = {"mail_id": "mail-038", "body": "I am afraid I cannot make it this time."}
ANSWERED = [
    {"turn": 0, "tool_calls": [SEARCH, NOBODY], "usage": USAGE},
    {"turn": 1, "tool_calls": [{"name": "mcp__gym__reply_to_mail", "arguments": REPLY}], "usage": USAGE},
    {"turn": 2, "text": "Everything is done.", "usage": USAGE},
]
LOOK = """python3 - <<'E'
import os, socket
reached = []
for address in (("1.1.1.1", 443), ("127.0.0.1", 22), ("169.254.169.254", 80)):
    try:
        socket.create_connection(address, 2)
        reached.append(address)
    except OSError:
        pass
print("reached:", reached, "secrets:", [name for name in os.environ if "SECRET" in name])
E"""
each = pytest.mark.parametrize("harness", HARNESSES)


def tools(trajectory: Trajectory) -> list[tuple[str, str, str]]:
    return [(call.name, call.status, call.timing) for turn in trajectory.turns for call in turn.tool_calls]


def marked(mark: str) -> list[int]:
    """Processes of this machine whose command line has this text."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


def test_gym_eval_run_plays_an_environment_by_its_tools(
    installed: None, gym: Callable[..., Any], store: Path, tmp_path: Path
) -> None:
    """All three in one run, from the command line; the environment's tools come over MCP."""
    (tmp_path / "run.yaml").write_text(
        f"""
environments: [{{name: workplace, tasks: [test-0000]}}]
models: {{policy: {{provider: scripted, model: stand-in, parameters: {{rules: {ANSWERED!r}}}}}}}
agents: {{{", ".join(f"{name}: {{harness: {{name: {name}}}}}" for name in HARNESSES)}}}
"""
    )
    ran = gym("eval", "run", "--config", str(tmp_path / "run.yaml"), "--no-health", timeout=170)
    assert ran.code == 0, ran.err
    [run] = gym("runs", "--json").json
    reader = Store(store).run(run["run_id"])
    agents = set()
    for index in range(len(HARNESSES)):
        record = reader.record(index)
        rollout, trajectory = record.rollout, record.evidence.trajectory
        agents.add(rollout.agent)
        assert (rollout.status, rollout.stop_reason, rollout.turns) == (Status.COMPLETED, StopReason.FINISHED, 3)
        assert (rollout.usage.prompt_tokens, rollout.usage.completion_tokens) == (36, 15)
        [verdict] = reader.verdicts(index)
        assert verdict.passed
        assert tools(trajectory) == [
            ("search_mail", "ok", "executor"),
            ("search_mail", "ok", "executor"),
            ("reply_to_mail", "ok", "executor"),
        ]
        assert trajectory.gaps == []
    assert agents == set(HARNESSES)


@each
async def test_a_rollout_leaves_a_whole_trajectory(play: Callable[..., Any], harness: str) -> None:
    broken = {"name": "mcp__gym__reply_to_mail", "arguments": {"mail_id": "mail-999", "body": "?"}}
    record, _ = await play(
        harness,
        [
            {"turn": 0, "tool_calls": [SEARCH, NOBODY], "usage": USAGE},
            {"turn": 1, "tool_calls": [shell(harness, "sleep 1; echo one"), shell(harness, "exit 3")], "usage": USAGE},
            {"turn": 2, "tool_calls": [{"name": "no_such_tool", "arguments": {}}, broken], "usage": USAGE},
            {"turn": 3, "text": "Done.", "reasoning": "Nothing is left to do.", "usage": USAGE},
        ],
    )
    rollout, trajectory, calls = record.rollout, record.evidence.trajectory, record.model_calls
    assert (rollout.status, rollout.stop_reason) == (Status.COMPLETED, StopReason.FINISHED)
    own = "harness_event"
    name = shell(harness, "")["name"]
    assert tools(trajectory) == [
        ("search_mail", "ok", "executor"),
        ("search_mail", "ok", "executor"),
        (name, "ok", own),
        (name, "error", own),
        ("no_such_tool", "unknown_tool", own),
        ("reply_to_mail", "error", "executor"),
    ]
    found, none, slow, *_ = (call for turn in trajectory.turns for call in turn.tool_calls)
    assert '"mail-038"' in (found.output or "") and '"total": 0' in (none.output or "") and "one" in (slow.output or "")
    for turn in trajectory.turns:
        for call in turn.tool_calls:
            assert call.started_at is not None and call.ended_at is not None and call.started_at <= call.ended_at
    # Usage is counted once, by the gateway.
    assert (rollout.usage.prompt_tokens, rollout.usage.completion_tokens) == (48, 20)
    assert [call.parent for call in calls] == [None, 0, 1, 2]
    assert [turn.model_call for turn in trajectory.turns] == [0, 1, 2, 3]
    assert all(call.parameters["temperature"] == 0.5 for call in calls)
    assert all(call.parameters["max_output_tokens"] == 777 for call in calls)
    assert not any("reasoning_effort" in call.parameters for call in calls), "the run does not ask for one"
    assert "Done." in str(record.evidence.response)
    [use] = trajectory.sandbox
    assert use.exit_code == 0 and use.cpu_s and use.peak_memory_bytes
    assert trajectory.gaps == []


@each
async def test_files_are_written_in_the_environments_own_sandbox(play: Callable[..., Any], harness: str) -> None:
    """The workspace is the evidence, without the agent's own files; what the agent left running is dead."""
    mark = f"98{os.getpid() % 10_000:04d}{HARNESSES.index(harness)}"
    leave = f"(setsid sh -c 'sleep {mark}; sleep {mark}' >/dev/null 2>&1 &)"
    rules = [{"turn": 0, "tool_calls": [shell(harness, f"cp question.txt answer.txt; {leave}")]}, {"text": "Written."}]
    record, verdict = await play(harness, rules, environment="note")
    assert record.rollout.stop_reason is StopReason.FINISHED, record.rollout.failure_message
    assert verdict.verdict.reward == 1.0
    assert set(record.evidence.artifacts) == {"workspace", "patch"}
    assert len(record.evidence.trajectory.sandbox) == 1
    assert marked(mark) == []


@each
async def test_nothing_can_be_reached_but_the_gateway(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, harness: str
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_MACHINE", "x")
    record, _ = await play(harness, [{"turn": 0, "tool_calls": [shell(harness, LOOK)]}, {"text": "Seen."}])
    [call] = record.evidence.trajectory.turns[0].tool_calls
    assert "reached: [] secrets: []" in (call.output or "")


@each
async def test_turns_end_at_the_gateway(play: Callable[..., Any], harness: str) -> None:
    record, verdict = await play(harness, [{"tool_calls": [SEARCH], "usage": USAGE}], max_turns=3)
    assert (record.rollout.status, record.rollout.stop_reason) == (Status.COMPLETED, StopReason.MAX_TURNS)
    assert len(record.model_calls) == len(record.evidence.trajectory.turns) == 3
    assert verdict.verdict.reward == 0.0


async def test_agents_whose_time_is_over_die_with_everything_that_they_started(play: Callable[..., Any]) -> None:
    mark = f"99{os.getpid() % 10_000:04d}"
    stay = f"(setsid sh -c 'sleep {mark}; sleep {mark}' &); python3 -c 'import time; time.sleep({mark})'"
    began = time.monotonic()
    played = await asyncio.gather(
        *(play(name, [{"tool_calls": [shell(name, stay)]}], wall_time_s=20) for name in HARNESSES)
    )
    assert time.monotonic() - began < 30
    assert marked(mark) == []
    assert [record.rollout.stop_reason for record, _ in played] == [StopReason.WALL_TIME] * len(HARNESSES)
    # On a busy machine not all of them get as far; Codex lets a long command go on in the background and asks again.
    last = [turn.tool_calls[-1] for record, _ in played for turn in record.evidence.trajectory.turns[-1:]]
    assert last and all(call.started_at is not None and call.output is None for call in last)


@each
async def test_a_server_that_is_down_is_not_a_zero(play: Callable[..., Any], harness: str) -> None:
    down = {"error": {"status": 500, "message": "out of order", "retryable": False}}
    record, verdict = await play(harness, [{"turn": 0, "tool_calls": [SEARCH]}, down])
    assert (record.rollout.status, record.rollout.failure) == (Status.FAILED, FailureKind.MODEL_ERROR)
    assert record.rollout.failure_message == "out of order"
    assert verdict is None
    assert [call.status for call in record.model_calls] == ["ok", "error"], "its own retries are switched off"


@each
async def test_a_history_that_outgrew_the_context_is_the_agents_doing(play: Callable[..., Any], harness: str) -> None:
    full = {"error": {"context_overflow": True, "message": "prompt is too long: 9000 tokens > 8000 maximum"}}
    record, _ = await play(harness, [{"turn": 0, "tool_calls": [SEARCH]}, full])
    assert (record.rollout.status, record.rollout.stop_reason) == (Status.COMPLETED, StopReason.CONTEXT_OVERFLOW)


@each
async def test_a_conversation_goes_on_in_the_agents_own_session(play: Callable[..., Any], harness: str) -> None:
    """The environment answers each message; the agent is resumed, and its history goes on unbroken."""
    rules = [{"turn": 0, "text": "Guess: apple", "usage": USAGE}, {"text": "Guess: bread", "usage": USAGE}]
    record, _ = await play(harness, rules, environment="word_guess", max_turns=3)
    assert [call.parent for call in record.model_calls] == [None, 0, 1]
    turns = record.evidence.trajectory.turns
    assert turns[0].step is not None and turns[0].step.messages
    assert turns[0].step.messages[0]["content"][:20] in str(record.model_calls[1].new_input)


async def test_an_endpoint_that_speaks_the_agents_dialect_gets_its_requests_as_they_are(installed: None) -> None:
    """Streams are passed on as they come; the run's sampling stands in place of the agent's, and nobody else asks anything."""
    with start_endpoint(tool_turns=1, text="Done.") as endpoint:
        root = endpoint.url.removesuffix("/v1")
        specs = {
            "codex": ModelSpec(model="m", api="responses", base_url=f"{root}/v1"),
            "claude_code": ModelSpec(provider="anthropic", model="m", base_url=root),
            "pi": ModelSpec(model="m", base_url=f"{root}/v1"),
        }
        for harness, spec in specs.items():
            agent = AgentSpec(harness=ComponentRef(name=harness))
            sampling = Sampling(temperature=0.5, max_output_tokens=777)
            samples = collect(EnvironmentSelection(name="workplace", limit=1), agent, spec, sampling=sampling)
            [record] = [sample.record async for sample in samples]
            assert record.rollout.stop_reason is StopReason.FINISHED, record.rollout.failure_message
            assert [call.parent for call in record.model_calls] == [None, 0]
            for call in record.model_calls:
                assert call.first_token_s is not None and call.response_id is not None
                assert (call.parameters["temperature"], call.parameters["max_output_tokens"]) == (0.5, 777)
            assert record.rollout.usage.completion_tokens == 40
            assert "Done." in str(record.evidence.response)
        assert endpoint.stats()["requests"] == 3 * len(specs), "the probe before a run, and two calls"


async def test_subagents_are_loops_of_their_own(play: Callable[..., Any]) -> None:
    task = {"description": "look", "prompt": "Find the mail.", "subagent_type": "general-purpose"}
    record, _ = await play(
        "claude_code",
        [
            {"turn": 0, "times": 1, "tool_calls": [{"name": "Task", "arguments": task}]},
            {"turn": 0, "tool_calls": [SEARCH]},
            {"turn": 1, "contains": "mail-038", "text": "It is mail-038."},
            {"text": "Done."},
        ],
    )
    trajectory = record.evidence.trajectory
    assert [(one.kind, one.parent_turn) for one in trajectory.invocations] == [("main", None), ("subagent", 0)]
    inner = [turn for turn in trajectory.turns if turn.invocation == 1]
    assert [call.name for turn in inner for call in turn.tool_calls] == ["search_mail"]
    assert all(record.model_calls[turn.model_call].invocation == 1 for turn in inner)


async def test_a_command_line_that_is_missing_is_said_before_the_run(
    gym: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GYMFLOW_CLIS", str(tmp_path / "none"))
    ran = gym("eval", "run", "workplace", "--harness", "codex", "--limit", "1")
    assert ran.code == 2
    assert "@openai/codex 0.171.0 is not installed; `gym env prepare codex` does that" in ran.err
    listed = {one["name"]: one for one in gym("list", "harnesses", "--for", "workplace", "--json").json}
    assert listed["codex"]["details"]["installed"] is False and listed["simple"]["details"]["installed"] is True
    assert listed["pi"]["external_licence"] == "MIT" and listed["pi"]["details"]["fits"] is True


def test_prepare_leaves_what_is_there(installed: None, gym: Callable[..., Any]) -> None:
    before = {path.name: path.stat().st_mtime for path in CACHE.iterdir()}
    ran = gym("env", "prepare", *HARNESSES)
    assert (ran.code, ran.out.split("\n")[0]) == (0, "codex: ready"), ran.err
    assert {path.name: path.stat().st_mtime for path in CACHE.iterdir() if path.suffix != ".lock"} == {
        name: at for name, at in before.items() if not name.endswith(".lock")
    }
