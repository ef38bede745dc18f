"""gVisor as the runtime of Docker sandboxes: what differs from the usual one."""

import time

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import SandboxLost, SandboxUnavailable
from gymflow.sandboxes.docker.engine import Engine

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
async def gvisor(docker):
    """A started sandbox; skips where the daemon does not know the runtime."""
    engine = Engine()
    runtimes = (await engine.call("GET", "/info"))["Runtimes"]
    await engine.close()
    if "runsc" not in runtimes:
        pytest.skip(f"the Docker daemon has no runtime `runsc`, only {', '.join(runtimes)}")
    sandbox = await docker.start(SandboxSpec(provider="docker", options={"runtime": "runsc"}))
    yield sandbox
    await sandbox.stop()


async def test_commands_run_on_gvisors_kernel_and_not_on_this_machines(gvisor):
    result = await gvisor.exec("dmesg; cat /proc/net/dev; echo err >&2; exit 7")
    assert (result.outcome, result.exit_code, result.stderr) == ("exited", 7, b"err\n")
    assert b"Starting gVisor" in result.stdout
    assert b"eth0" not in result.stdout
    data = bytes(range(256)) * 400
    await gvisor.put("deep/bytes", data)
    assert await gvisor.get("deep/bytes") == data


async def test_a_time_limit_ends_the_whole_tree(gvisor):
    before = time.monotonic()
    result = await gvisor.exec("setsid sleep 3011 & echo begun; sleep 3012", timeout_s=1)
    assert (result.outcome, result.stdout) == ("timeout", b"begun\n")
    assert time.monotonic() - before < 8
    assert b"sleep 301" not in (await gvisor.exec("ps -o args")).stdout.replace(b"ps -o", b"")


async def test_a_runtime_that_the_daemon_does_not_know_is_said(docker):
    with pytest.raises(SandboxUnavailable, match="no-such-runtime"):
        await docker.start(SandboxSpec(provider="docker", options={"runtime": "no-such-runtime"}))


async def test_exceeded_memory_takes_the_sandbox_and_not_the_machine(gvisor, docker):
    small = await docker.start(
        SandboxSpec(provider="docker", options={"runtime": "runsc"}, limits=SandboxLimits(memory_mib=96))
    )
    with pytest.raises(SandboxLost):
        await small.exec("head -c 300000000 /dev/zero | tail -n 1 | wc -c", timeout_s=30)
    await small.stop()
    assert (await gvisor.exec("echo alive")).stdout == b"alive\n"
