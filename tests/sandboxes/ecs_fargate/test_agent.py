"""The exec agent of `ecs_fargate`, for real: a process in namespaces of its own, and the client that speaks to it."""

import asyncio
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import SandboxError

ALL_BYTES = bytes(range(256)) * 4


@pytest.fixture
def limits():
    return SandboxLimits()


@pytest.fixture
async def sandbox(agents, limits, request):
    from gymflow.sandboxes.ecs_fargate.sandbox import FargateSandbox

    async def nothing() -> None:
        return None

    user = "23456" if limits.processes else None
    spec = SandboxSpec(provider="ecs_fargate", workdir="/srv/work", limits=limits, user=user)
    address = agents.start("test", {"GYMFLOW_TOKEN_SHA256": agents.digest("a-token"), "GYMFLOW_LIFE_S": "60"})
    made = FargateSandbox("test", spec, address=address, token="a-token", gone=nothing, end=nothing)
    await made.prepare()
    yield made
    await made.stop()


async def command_lines(sandbox) -> bytes:
    return (await sandbox.exec("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '", user="root")).stdout


async def test_exit_codes_streams_and_bytes_are_exact(sandbox):
    result = await sandbox.exec("printf 'a\\377\\000'; printf b >&2; exit 3")
    assert (result.outcome, result.exit_code, result.stdout, result.stderr) == ("exited", 3, b"a\xff\0", b"b")
    assert (await sandbox.exec(["cat"], stdin=ALL_BYTES * 5000)).stdout == (ALL_BYTES * 5000)[: 1 << 20]
    assert (await sandbox.exec(["cat"])).stdout == b""
    assert (await sandbox.exec(["no-such-command"])).exit_code == 127
    assert (await sandbox.exec("true", cwd="/no/such")).exit_code == 126
    assert (await sandbox.exec("kill -KILL $$")).outcome == "killed"


async def test_fifty_megabytes_of_output_are_complete_and_quick(sandbox):
    began = time.monotonic()
    result = await sandbox.exec("head -c 50000000 /dev/zero; echo end >&2", keep_bytes=64 << 20)
    assert (len(result.stdout), result.stderr, result.truncated) == (50_000_000, b"end\n", False)
    assert time.monotonic() - began < 20


async def test_commands_are_an_unprivileged_users_without_the_tasks_environment(sandbox):
    result = await sandbox.exec("id -u; id -G; pwd; env; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")
    lines = result.stdout.decode().split("\n")
    assert lines[:3] == ["1000", "1000", "/srv/work"]
    assert (
        "CapEff:\t0000000000000000" in lines
        and "CapBnd:\t0000000000000000" in lines
        and "NoNewPrivs:\t1" in lines
        and "HOME=/home/agent" in lines
    )
    assert not [line for line in lines if line.startswith(("AWS_", "GYMFLOW_TOKEN", "GYMFLOW_LIFE"))]
    assert (await sandbox.exec("cat /proc/1/environ; id -u", user="root")).stdout.endswith(b"0\n")
    assert (await sandbox.exec("id -u; id -g", user="1234:77")).stdout == b"1234\n77\n"


async def test_a_timeout_ends_children_that_changed_session_or_environment(sandbox):
    result = await sandbox.exec("echo begun; setsid sleep 86411 & env -i sleep 86411", timeout_s=0.5)
    assert (result.outcome, result.exit_code, result.stdout) == ("timeout", 137, b"begun\n")
    assert b"sleep 86411" not in await command_lines(sandbox)


@pytest.mark.parametrize("limits", [SandboxLimits(processes=32)])
async def test_a_fork_bomb_is_ended_and_the_task_lives_on(sandbox):
    result = await sandbox.exec("bomb() { bomb & bomb & wait; }; bomb", timeout_s=1.5)
    assert result.outcome in ("timeout", "exited") and result.duration_s < 30
    assert (await sandbox.exec("echo alive")).stdout == b"alive\n"


@pytest.mark.parametrize("limits", [SandboxLimits(output_mib=1)])
async def test_a_flood_is_ended_and_what_is_not_kept_is_not_sent(sandbox):
    flood = await sandbox.exec("yes", timeout_s=30, keep_bytes=100)
    assert (flood.outcome, len(flood.stdout), flood.truncated) == ("output_limit", 100, True)


async def test_a_cancelled_command_and_one_whose_caller_is_gone_end(sandbox):
    running = asyncio.ensure_future(sandbox.exec("sleep 86412"))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0.3)
    assert b"sleep 86412" not in await command_lines(sandbox)


async def test_a_child_in_the_background_is_not_waited_for(sandbox):
    began = time.monotonic()
    assert (await sandbox.exec("echo begun; sleep 30 &")).stdout == b"begun\n"
    assert time.monotonic() - began < 10


async def test_usage_is_reported(sandbox):
    result = await sandbox.exec("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    assert result.usage.cpu_s and result.usage.cpu_s > 0.05
    assert result.usage.peak_memory_bytes and result.usage.peak_memory_bytes > 100_000


async def test_concurrent_commands_do_not_mix(sandbox):
    results = await asyncio.gather(*[sandbox.exec(f"echo {n}; echo {n} >&2; exit {n}") for n in range(12)])
    assert [(r.exit_code, r.stdout, r.stderr) for r in results] == [(n, b"%d\n" % n, b"%d\n" % n) for n in range(12)]


async def test_files_go_there_and_back(sandbox):
    for name, data in {"a/b c/ü.bin": ALL_BYTES * 1000, "empty": b"", "/tmp/absolute": b"x"}.items():
        await sandbox.put(name, data)
        assert await sandbox.get(name) == data
    with pytest.raises(FileNotFoundError):
        await sandbox.get("no-such-file")


async def test_a_wrong_token_is_refused_by_the_agent(sandbox):
    sandbox._headers = {"Authorization": "Bearer other"}
    with pytest.raises(SandboxError, match="HTTP 401") as caught:
        await sandbox.exec("true")
    assert caught.value.maybe_ran is False


def works(path: str) -> bool:
    return subprocess.run([path, "-c", "import ctypes"], capture_output=True).returncode == 0


NAMES = ("python3.7", "python3.8", "python3.9", "python3.10")
PYENV = Path.home() / ".pyenv/versions"
FOUND = [*map(str, sorted(PYENV.glob("3.[789].*/bin/python3"))), *filter(None, map(shutil.which, NAMES))]
OLD = next(filter(works, FOUND), None)


@pytest.mark.skipif(OLD is None, reason="no old Python here")
async def test_it_runs_on_the_python_of_an_old_image(agents):
    from gymflow.sandboxes.ecs_fargate.sandbox import FargateSandbox

    async def nothing() -> None:
        return None

    variables = {"GYMFLOW_TOKEN_SHA256": agents.digest("a-token"), "GYMFLOW_LIFE_S": "60"}
    address = agents.start("old", variables, python=OLD)
    sandbox = FargateSandbox(
        "old", SandboxSpec(workdir="/srv/work"), address=address, token="a-token", gone=nothing, end=nothing
    )
    await sandbox.prepare()
    assert (await sandbox.exec("cat; exit 3", stdin=ALL_BYTES)).stdout == ALL_BYTES
    assert (await sandbox.exec("setsid sleep 86413 & sleep 86413", timeout_s=0.3)).outcome == "timeout"
    await sandbox.stop()
