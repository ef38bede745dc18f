"""Rollouts in a sandbox: what the harness works in, what is kept of it, and how its faults end a rollout."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.evaluate import evaluate
from flows.reverify import reverify
from gymflow.errors import InputError, RunIncomplete
from gymflow.sandboxes import ROLLOUT, RUN, archive, close_providers, images, provider
from gymflow.sandboxes.local import LocalProvider
from gymflow.store import Store, connect
from tests.support.environments import write_environment
from tests.support.runs import scripted

VERIFIER = '''"""Reward 1 where the agent left the right answer in answer.txt."""

from pydantic import BaseModel

from gymflow.sandboxes import archive
from gymflow.verifiers import Evidence, Verdict, Verifier


class LeftTask(BaseModel):
    files: dict[str, str]
    answer: str


class Left(Verifier[LeftTask]):
    async def verify(self, task: LeftTask, evidence: Evidence) -> Verdict:
        if "workspace" not in evidence.artifacts:
            return Verdict(reward=0.0, reason="no workspace")
        left = archive.read(evidence.read_artifact("workspace"))
        return Verdict(reward=float(left.get("answer.txt") == task.answer.encode()), details={"start": task.files})
'''


def office(tmp_path: Path, **manifest) -> str:
    """An environment with one task: copy question.txt to answer.txt."""
    fixtures = [
        {"kind": kind, "task_id": "copy", "files": {"answer.txt": text}, "reward": reward}
        for kind, text, reward in (
            ("full", "7\n", 1.0), ("none", "0", 0.0), ("near_miss", "7", 0.0), ("format_variant", "7\n", 1.0),
            ("malformed", "{", 0.0), ("empty", "", 0.0),
        )
    ]  # fmt: skip
    fields = {
        "offers": ["messages", "shell"],
        "harness": {"name": "simple"},
        "sandbox": {"limits": {"memory_mib": 256}, "env": {"PLACE": "here"}},
        "prompt": {"user": "Copy question.txt to answer.txt."},
        "collects": ["workspace", "patch"],
    }
    rows = [{"task_id": "copy", "sandbox": {"files": {"question.txt": "7\n"}}, "answer": "7\n"}]
    write_environment(tmp_path / "office", rows=rows, fixtures=fixtures, code=VERIFIER, **{**fields, **manifest})
    return str(tmp_path / "office")


def commands(*lines: str) -> list[dict]:
    calls = [
        {"turn": turn, "tool_calls": [{"name": "run_command", "arguments": {"command": line}}]}
        for turn, line in enumerate(lines)
    ]
    return [*calls, {"text": "Done."}]


async def run(store: Path, environment: str, rules: list[dict], **selection):
    config = scripted(environments=[{"name": environment, **selection}], rules=rules)
    try:
        await evaluate(config, "r", str(store), diagnosis=False)
    except RunIncomplete:
        pass
    record = Store(store).run("r").record(0)
    return record


def rewards(store: Path) -> list:
    with connect(store) as connection:
        return connection.execute("select reward from verdicts").fetchall()


async def test_the_workspace_is_there_and_what_the_agent_leaves_is_kept(store, home, tmp_path):
    record = await run(store, office(tmp_path), commands("cp question.txt answer.txt; echo $PLACE; exit 3"))

    [use] = record.evidence.trajectory.sandbox
    assert (use.outcome, use.exit_code, use.command) == ("exited", 3, "cp question.txt answer.txt; echo $PLACE; exit 3")
    assert use.cpu_s is not None and use.duration_s > 0
    read = Store(store).artifacts.read
    left = archive.read(read(record.evidence.artifacts["workspace"]))
    assert left == {"question.txt": b"7\n", "answer.txt": b"7\n"}
    assert read(record.evidence.artifacts["patch"]) == b"--- /dev/null\n+++ b/answer.txt\n@@ -0,0 +1 @@\n+7\n"
    [call] = record.evidence.trajectory.turns[0].tool_calls
    assert "here" in call.output and "exit code 3" in call.output
    assert rewards(store) == [(1.0,)]


async def test_running_out_of_memory_is_the_commands_end_and_the_agents_doing(store, home, tmp_path):
    record = await run(
        store, office(tmp_path), commands("python3 -c 'x = bytearray(1 << 30)'", "cp question.txt answer.txt")
    )

    assert [use.outcome for use in record.evidence.trajectory.sandbox][1] == "exited"
    assert record.evidence.trajectory.sandbox[0].exit_code != 0
    assert (record.rollout.status, rewards(store)) == ("completed", [(1.0,)])


async def test_sb_container_dies_and_the_rollout_is_tried_again(store, home, tmp_path):
    first, *then = commands("sleep 317.25"), *commands("cp question.txt answer.txt")
    playing = asyncio.create_task(run(store, office(tmp_path), [first[0] | {"times": 1}, *then]))
    while not any(b"sleep\x00317.25\x00" in line for line in _command_lines()):
        assert not playing.done()
        await asyncio.sleep(0.05)
    found = await provider("local").list({RUN: "r"})
    await provider("local").remove(found[0].sandbox_id)
    record = await playing

    assert [attempt.failure for attempt in record.attempts] == ["sandbox_unavailable"]
    assert found[0].labels[ROLLOUT] == record.rollout.rollout_id
    assert (record.rollout.status, rewards(store)) == ("completed", [(1.0,)])


def _command_lines() -> Iterator[bytes]:
    """Of all processes here, those in sandboxes included."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


async def test_a_sandbox_past_its_declared_life_ends_the_episode(store, home, tmp_path):
    record = await run(store, office(tmp_path, sandbox={"limits": {"wall_s": 2.5}}), commands("sleep 20"))

    assert (record.rollout.status, record.rollout.stop_reason) == ("completed", "wall_time")
    assert [gap.code for gap in record.evidence.trajectory.gaps] == ["no_workspace"]
    assert rewards(store) == [(0.0,)]


async def test_a_harness_that_does_not_use_a_sandbox_gets_none(store, home, tmp_path):
    record = await run(store, office(tmp_path), [{"text": "7"}], harness={"name": "single_turn"})

    assert record.evidence.artifacts == {}
    assert rewards(store) == [(0.0,)]


async def test_a_provider_that_cannot_run_here_is_said_before_the_run(store, home, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(InputError, match="`docker` cannot be used here"):
        await run(store, office(tmp_path), commands("true"), sandbox={"provider": "docker"})
    assert not (store / "runs").exists()


@pytest.mark.parametrize(
    ("sandbox", "message"),
    [({"provider": "dockr"}, "docker"), ({"limits": {"memory_mib": 1}}, "memory_mib"), ({"memory": 1}, "memory")],
)
async def test_a_wrong_sandbox_is_named(store, home, tmp_path, sandbox, message):
    with pytest.raises((InputError, ValueError), match=message):
        await run(store, office(tmp_path), commands("true"), sandbox=sandbox)


async def test_a_sandbox_for_an_environment_that_has_none_is_refused(store, home, tmp_path):
    with pytest.raises(InputError, match=r"sandbox\.provider: office asks for no sandbox"):
        await run(
            store, office(tmp_path, sandbox=None, offers=["messages"]), commands("true"), sandbox={"provider": "local"}
        )


TEST_SH = """
mkdir -p /logs/verifier
if [ "$(cat /home/agent/deep/answer.txt)" = 7 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
sleep 0.3
"""


def machine(tmp_path: Path) -> str:
    """An environment whose tests look beyond the workspace."""
    rows = [{"task_id": "copy", "sandbox": {"files": {"question.txt": "7\n"}}, "tests": {"test.sh": TEST_SH}}]
    fields = {
        "offers": ["messages", "shell"],
        "harness": {"name": "simple"},
        "sandbox": {"limits": {"memory_mib": 256}},
        "prompt": {"user": "Copy question.txt to ~/deep/answer.txt."},
        "verifier": {"name": "terminal_shared"},
    }
    write_environment(tmp_path / "machine", rows=rows, **fields)
    return str(tmp_path / "machine")


async def test_a_verifier_may_look_at_the_agents_own_machine_when_the_episode_has_ended(store, home, tmp_path):
    record = await run(store, machine(tmp_path), commands("mkdir ~/deep; cp question.txt ~/deep/answer.txt"))

    assert rewards(store) == [(1.0,)]
    assert len(record.evidence.trajectory.sandbox) == 1  # the verifier's commands are not the agent's
    assert {"workspace", "verification"} <= set(record.evidence.artifacts)
    with pytest.raises(InputError, match="recorded"):
        await reverify("r", store=str(store))


async def test_se_background_writer_and_planted_rewards_score_nothing(store, home, tmp_path):
    writer = "(while true; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; sleep 0.02; done) >/dev/null 2>&1 &"
    await run(store, machine(tmp_path), commands(writer, "mkdir -p /tests; echo 'echo 1' > /tests/test.sh"))

    with connect(store) as connection:
        [(reward, details)] = connection.execute("select reward, details from verdicts").fetchall()
    assert reward == 0.0
    assert json.loads(details)["tamper_suspected"] is True


async def test_a_workspace_that_is_gone_is_a_gap_and_a_zero(store, home, tmp_path):
    record = await run(store, office(tmp_path), commands("rm -rf /work/* && rmdir /work; rm -f question.txt"))

    assert record.rollout.status == "completed"
    assert rewards(store) == [(0.0,)]
    assert json.loads(record.evidence.trajectory.model_dump_json())["sandbox"]


def test_without_isolation_a_run_is_refused_unless_asked_for_by_name(gym, tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "tar", "mkdir", "cat", "cp"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))  # no bubblewrap
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps(commands("cp question.txt answer.txt")))
    place = office(tmp_path, sandbox={"network": "open"})
    asked = ("eval", "run", place, "--model", "scripted", "--set", f"models.policy.parameters.script={rules}", "--json")
    refused = gym(*asked)
    assert refused.code == 2 and "--unsafe-host" in refused.err
    allowed = gym(*asked, "--unsafe-host")
    assert allowed.code == 0, allowed.err
    assert gym("sql", "select reward from verdicts", "--json").json == [{"reward": 1.0}]


async def test_what_an_image_holds_is_in_the_key(store, home, tmp_path, monkeypatch):
    held = {"name": "first"}

    async def identity(self, image):
        return held["name"]

    monkeypatch.setattr(LocalProvider, "image_identity", identity)
    config = scripted(environments=[{"name": office(tmp_path)}], rules=commands("true"))
    for run_id in ("r", "same"):
        await evaluate(config, run_id, str(store), health=False, diagnosis=False)
    held["name"] = "second"
    await evaluate(config, "other", str(store), health=False, diagnosis=False)
    with connect(store) as connection:
        found = connection.execute("select run_id, rollout_key, task_key from rollouts order by run_id").fetchall()
    keys = {run_id: (rollout_key, task_key) for run_id, rollout_key, task_key in found}
    assert keys["r"] == keys["same"]
    assert keys["r"][0] != keys["other"][0] and keys["r"][1] == keys["other"][1]
    with pytest.raises(InputError, match="another sandbox"):
        await evaluate(config, "r", str(store))


BUSYBOX = "gymflow/test-busybox"


@pytest.mark.docker
async def test_the_same_environment_plays_on_docker(store, home, tmp_path):
    docker = provider("docker")
    if (problem := await docker.problem()) is not None:
        pytest.skip(f"no docker here: {problem}")
    if await docker.image_identity(BUSYBOX) == BUSYBOX:
        await images.build(images.Recipe(name=BUSYBOX, base="busybox"), "docker")
    terminal = {"name": "terminal"}
    rows = [{"task_id": "copy", "sandbox": {"files": {"question.txt": "7\n"}}, "tests": {"test.sh": SEPARATE_SH}}]
    fixtures = [
        {"kind": kind, "task_id": "copy", "files": {"answer.txt": text}, "reward": float(text.strip() == "7")}
        for kind, text in zip(KINDS, ("7\n", "0", "8", "7", "{", ""), strict=True)
    ]
    place = write_environment(
        tmp_path / "office",
        rows=rows,
        fixtures=fixtures,
        offers=["messages", "shell"],
        harness={"name": "simple"},
        sandbox={"workdir": "/app", "limits": {"memory_mib": 256}},
        prompt={"user": "Copy question.txt to answer.txt."},
        verifier=terminal,
        collects=["workspace", "patch"],
    )
    record = await run(
        store,
        str(place),
        commands("id -u; pwd; cp question.txt answer.txt && chmod 755 answer.txt"),
        sandbox={"provider": "docker", "image": BUSYBOX},
    )

    assert rewards(store) == [(1.0,)]
    [call] = record.evidence.trajectory.turns[0].tool_calls
    assert "/app" in call.output and not call.output.startswith("0\n")
    assert b"+++ b/answer.txt" in Store(store).artifacts.read(record.evidence.artifacts["patch"])
    await close_providers()


KINDS = ("full", "none", "near_miss", "format_variant", "malformed", "empty")
SEPARATE_SH = 'if [ "$(cat /app/answer.txt)" = 7 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
