"""The `local` provider beyond what every provider does: killed runs, machines without control groups, weaker tiers."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import Capability, SandboxLost, SandboxUnavailable
from gymflow.sandboxes.interface import Mount
from gymflow.sandboxes.labels import Owner
from gymflow.sandboxes.local import LocalProvider, cgroups, layout, state
from gymflow.sandboxes.local import provider as provider_module
from gymflow.sandboxes.local.platform import bubblewrap, landlock_abi

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

OWNER = textwrap.dedent("""
    import asyncio, json, sys
    from gymflow.contracts.sandbox import SandboxSpec
    from gymflow.sandboxes.local import LocalProvider
    from gymflow.sandboxes.local.spawner import Spawner

    async def main():
        provider = LocalProvider()
        sandbox = await provider.start(SandboxSpec(), labels={"gymflow.run": "killed"})
        await sandbox.exec("setsid sleep 4001 >/dev/null 2>&1 &")
        shot = asyncio.ensure_future(provider.run(SandboxSpec(), "sleep 4002"))
        await asyncio.sleep(0.5)
        print(json.dumps({"id": sandbox.id, "spawner": Spawner.shared()._process.pid}), flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
""")


def command_lines() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended while we looked
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(found)


def groups_of(pid: int) -> list[Path]:
    tree = cgroups.detect()
    return [f for base in (tree.folders() if tree else []) for f in base.glob(f"p{pid}-*")]


async def eventually(condition, within_s: float = 10) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        await asyncio.sleep(0.05)
    return False


@pytest.fixture
def owner():
    """Another process with a sandbox and a running one-shot command."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    yield process, told
    process.kill()
    process.wait()
    process.stdout.close()


async def test_a_killed_process_leaves_nothing_behind(owner):
    process, told = owner
    assert "sleep 4001" in command_lines() and "sleep 4002" in command_lines()
    process.kill()
    process.wait()
    assert await eventually(lambda: "sleep 400" not in command_lines())
    assert await eventually(lambda: not groups_of(process.pid))
    assert await eventually(lambda: told["id"] not in [entry.sandbox_id for entry in state.entries()])


async def test_clean_removes_what_even_a_killed_spawner_left_and_spares_the_living(owner):
    process, told = owner
    provider = LocalProvider()
    live = await provider.start(SandboxSpec())
    os.kill(told["spawner"], signal.SIGSTOP)
    process.kill()
    process.wait()
    os.kill(told["spawner"], signal.SIGKILL)
    assert told["id"] in [entry.sandbox_id for entry in state.entries()]
    assert await provider.clean() >= 1
    assert told["id"] not in [entry.sandbox_id for entry in state.entries()]
    assert not groups_of(process.pid) and "sleep 400" not in command_lines()
    assert (await live.exec("echo alive")).stdout == b"alive\n"
    await live.stop()


async def test_a_sandbox_whose_first_process_is_killed_is_lost_and_not_a_return_code():
    provider = LocalProvider()
    sandbox = await provider.start(SandboxSpec())
    running = asyncio.ensure_future(sandbox.exec("sleep 60"))
    await asyncio.sleep(0.3)
    os.kill(sandbox.entry.init[0], signal.SIGKILL)
    with pytest.raises(SandboxLost, match="killed"):
        await running
    with pytest.raises(SandboxLost):
        await sandbox.get("x")
    await sandbox.stop()


async def test_many_sandboxes_leave_no_descriptor_process_group_or_file():
    provider = LocalProvider()
    await provider.run(SandboxSpec(), "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(8):
        sandbox = await provider.start(SandboxSpec())
        await sandbox.exec("sleep 4003 >/dev/null 2>&1 &")
        await sandbox.stop()
        await provider.run(SandboxSpec(), "setsid sleep 4003 >/dev/null 2>&1 &")
    await provider.close()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert await eventually(lambda: not groups_of(os.getpid()), 5)
    assert not [e for e in state.entries() if e.labels["gymflow.owner"] == str(Owner.current())]
    assert await eventually(lambda: "sleep 4003" not in command_lines(), 2)


async def test_no_process_list_shows_what_the_environment_holds():
    provider = LocalProvider()
    sandbox = await provider.start(SandboxSpec(env={"TOKEN": "sk-in-the-spec"}))
    running = asyncio.ensure_future(sandbox.exec("sleep 2", env={"KEY": "sk-in-the-command"}))
    await asyncio.sleep(0.5)
    shown = command_lines()
    assert "sk-in-the" not in shown
    await sandbox.stop()
    with pytest.raises(SandboxLost):
        await running


async def test_a_mount_is_read_only_and_reaches_also_what_only_this_user_can(tmp_path):
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "tests").mkdir()
    (private / "tests" / "hidden.py").write_text("hidden")
    provider = LocalProvider()
    mounts = [Mount(private / "tests", "/opt/tests")]
    result = await provider.run(SandboxSpec(), "cat /opt/tests/hidden.py; echo x > /opt/tests/hidden.py", mounts=mounts)
    assert result.stdout == b"hidden" and result.exit_code == 2


async def test_an_installed_gymflows_own_data_is_not_visible(tmp_path, monkeypatch):
    site = tmp_path / "lib" / "python3" / "site-packages"
    (site / "gymflow" / "_shipped").mkdir(parents=True)
    (site / "gymflow" / "_shipped" / "answers.txt").write_text("42")
    (site / "other").mkdir()
    layout._python.cache_clear()
    monkeypatch.setattr(layout.sysconfig, "get_path", lambda name: str(site))
    try:
        result = await LocalProvider().run(
            SandboxSpec(), "find / -name answers.txt 2>/dev/null; find / -name other 2>/dev/null"
        )
        assert b"answers.txt" not in result.stdout and b"/other" in result.stdout
    finally:
        layout._python.cache_clear()


async def test_the_python_that_runs_gymflow_is_there():
    result = await LocalProvider().run(SandboxSpec(), ["python3", "-c", "import sys, pydantic; print(sys.version)"])
    assert result.stdout.decode().strip() == sys.version.replace("\n", " \n").replace(" \n", "\n").strip()


async def test_time_zone_and_hashes_are_fixed():
    line = "import time; print(hash('a'), time.tzname[0])"
    results = {(await LocalProvider().run(SandboxSpec(), ["python3", "-c", line])).stdout for _ in range(3)}
    assert len(results) == 1 and results.pop().endswith(b"UTC\n")


# --- without control groups ---


@pytest.fixture
def no_cgroups(monkeypatch):
    monkeypatch.setattr(cgroups, "detect", lambda: None)


async def test_without_control_groups_the_tree_still_ends_and_memory_is_bounded(no_cgroups):
    provider = LocalProvider()
    assert Capability.OOM_REPORT not in provider.capabilities and Capability.CPU_LIMIT not in provider.capabilities
    sandbox = await provider.start(SandboxSpec(limits=SandboxLimits(memory_mib=256)))
    result = await sandbox.exec("setsid sleep 4004 & (setsid sleep 4005 &) ; sleep 4006", timeout_s=0.5)
    assert result.outcome == "timeout"
    assert "sleep 400" not in command_lines()
    greedy = await sandbox.exec(["python3", "-c", "bytearray(600 << 20)"])
    assert greedy.exit_code == 1 and b"MemoryError" in greedy.stderr
    await sandbox.stop()
    shot = await provider.run(SandboxSpec(), "setsid sleep 4007 & sleep 4008", timeout_s=0.5)
    assert shot.outcome == "timeout"
    assert await eventually(lambda: "sleep 400" not in command_lines(), 3)


async def test_without_control_groups_a_fork_bomb_stays_inside(no_cgroups):
    sandbox = await LocalProvider().start(SandboxSpec(limits=SandboxLimits(processes=32)))
    await sandbox.exec("bomb() { bomb | bomb & }; bomb; sleep 1", timeout_s=1)
    await sandbox.stop()
    assert await eventually(lambda: "bomb" not in command_lines())


# --- machines that cannot isolate, and less isolation where the run accepts it ---


async def test_a_machine_that_cannot_isolate_refuses_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr(provider_module, "bubblewrap", lambda: "bubblewrap is not installed")
    with pytest.raises(SandboxUnavailable, match=r"not installed.*docker.*--unsafe-host"):
        await LocalProvider().start(SandboxSpec())
    with pytest.raises(SandboxUnavailable):
        await LocalProvider().run(SandboxSpec(), "true")


@pytest.mark.skipif(landlock_abi() < 4, reason="this kernel's Landlock does not know TCP")
async def test_the_weak_tier_keeps_files_and_tcp_away_and_says_that_it_is_weak(monkeypatch, tmp_path):
    monkeypatch.setattr(provider_module, "bubblewrap", lambda: "not here")
    (tmp_path / "secret").write_text("of the host")
    tmp_path.chmod(0o755)
    provider = LocalProvider("weak")
    sandbox = await provider.start(SandboxSpec(files={"a/in.txt": "input"}))
    assert sandbox.isolation == "weak"
    assert (await sandbox.exec("cat a/in.txt; echo x > out; cat out")).stdout == b"inputx\n"
    assert await sandbox.get("out") == b"x\n"
    assert not (await sandbox.exec(["cat", str(tmp_path / "secret")])).ok
    assert not (await sandbox.exec("echo x > /tmp/escaped")).ok
    connect = await sandbox.exec(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/22"])
    assert not connect.ok and b"Permission denied" in connect.stderr
    assert (await sandbox.exec("id -u")).stdout != b"0\n"
    assert (await sandbox.exec("setsid sleep 4009 & sleep 4010", timeout_s=0.5)).outcome == "timeout"
    assert "sleep 40" not in command_lines().replace("sleep 400", "")
    home = Path(sandbox.resolve(""))
    await sandbox.stop()
    assert not home.exists()


async def test_no_isolation_only_where_the_run_asks_for_it(monkeypatch):
    monkeypatch.setattr(provider_module, "bubblewrap", lambda: "not here")
    monkeypatch.setattr(provider_module, "landlock_abi", lambda: 0)
    sandbox = await LocalProvider("none").start(SandboxSpec(network="open"))
    assert sandbox.isolation == "none"
    assert (await sandbox.exec("echo here")).stdout == b"here\n"
    await sandbox.stop()
