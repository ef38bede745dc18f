"""`enroot` against an executable that keeps its command line: what it is called with, and what its failures become."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.errors import InputError
from gymflow.sandboxes import Capability, SandboxLost, SandboxUnavailable, SandboxUnsupported
from gymflow.sandboxes import provider as registered
from gymflow.sandboxes.interface import Mount
from gymflow.sandboxes.local import cgroups

SPEC = SandboxSpec(provider="enroot", network="open")


def processes(needle: bytes) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if needle in path.read_bytes().replace(b"\0", b" "):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


async def test_exit_codes_streams_and_input_are_exact(sandbox):
    result = await sandbox.exec("printf 'a\\377'; printf b >&2; exit 3")
    assert (result.outcome, result.exit_code, result.stdout, result.stderr) == ("exited", 3, b"a\xff", b"b")
    data = bytes(range(256)) * 4000
    assert (await sandbox.exec(["cat"], stdin=data, keep_bytes=2 << 20)).stdout == data
    assert (await sandbox.exec(["cat"])).stdout == b""
    assert (await sandbox.exec(["no-such-command"])).exit_code == 127
    assert (await sandbox.exec("kill -KILL $$")).outcome == "killed"


async def test_variables_arrive_as_they_are_and_no_process_list_shows_them(sandbox):
    odd = {"A": "two words", "B": "a=b", "C": "line\nbreak", "D": "quote ' \" $HOME `id`", "E": "ünïcödé", "F": ""}
    running = asyncio.ensure_future(
        sandbox.exec(
            "".join(f'printf "%s|" "${name}";' for name in odd) + "sleep 1", env={**odd, "KEY": "sk-of-the-user"}
        )
    )
    await asyncio.sleep(0.5)
    assert processes(b"sk-of-the-user") == []
    assert (await running).stdout.decode() == "".join(f"{value}|" for value in odd.values())
    with pytest.raises(SandboxUnsupported, match=r"a\.b"):
        await sandbox.exec("true", env={"a.b": "x"})


async def test_commands_start_in_the_workdir_or_where_they_are_told(sandbox):
    assert (await sandbox.exec("pwd")).stdout == b"/work\n"
    await sandbox.put("sub dir/x", b"")
    assert (await sandbox.exec("ls", cwd="sub dir")).stdout == b"x\n"
    missing = await sandbox.exec("true", cwd="/no/such/folder")
    assert missing.exit_code == 126 and missing.stderr


async def test_files_go_there_and_back_and_stay_between_commands(sandbox):
    data = bytes(range(256)) * 4000
    await sandbox.put("deep/er/file", data, mode=0o640)
    assert await sandbox.get("deep/er/file") == data
    assert (await sandbox.exec("stat -c %a deep/er/file")).stdout == b"640\n"
    with pytest.raises(FileNotFoundError):
        await sandbox.get("missing")


async def test_a_time_limit_ends_the_tree(sandbox):
    result = await sandbox.exec("echo begun; setsid sleep 5101 & (setsid sleep 5102 &) ; sleep 5103", timeout_s=1)
    assert (result.outcome, result.stdout) == ("timeout", b"begun\n")
    assert processes(b"sleep 510") == []
    assert (await sandbox.exec("echo alive")).stdout == b"alive\n"


async def test_stop_leaves_no_process_group_or_folder(provider, enroot):
    sandbox = await provider.start(SPEC)
    (folder,) = Path("/tmp").glob(f"{sandbox.id}-*")
    await sandbox.exec("setsid sleep 5104 >/dev/null 2>&1 &")
    assert processes(b"sleep 5104")
    await asyncio.gather(sandbox.stop(), sandbox.stop())
    assert processes(b"sleep 5104") == [] and not folder.exists() and await provider.list() == []
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_without_control_groups_the_tree_still_ends(provider, monkeypatch):
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    assert Capability.PROCESS_LIMIT not in provider.capabilities
    sandbox = await provider.start(SPEC)
    assert (await sandbox.exec("setsid sleep 5105 & sleep 5106", timeout_s=0.5)).outcome == "timeout"
    assert processes(b"sleep 5105") == []
    await sandbox.exec("setsid sleep 5107 >/dev/null 2>&1 &")
    await sandbox.stop()
    assert processes(b"sleep 5107") == []


async def test_memory_and_process_limits_hold(provider):
    if not {Capability.OOM_REPORT, Capability.PROCESS_LIMIT} <= set(provider.capabilities):
        pytest.skip("this process may not make control groups")
    sandbox = await provider.start(SPEC.model_copy(update={"limits": SandboxLimits(memory_mib=64, processes=16)}))
    assert (await sandbox.exec("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done")).outcome == "oom"
    full = await sandbox.exec("i=0; while [ $i -lt 40 ]; do sleep 20 >/dev/null 2>&1 & i=$((i+1)); done", timeout_s=10)
    assert not full.ok and full.stderr
    await sandbox.stop()


async def test_a_container_whose_process_is_killed_is_lost_and_not_a_return_code(sandbox):
    running = asyncio.ensure_future(sandbox.exec("sleep 60"))
    await asyncio.sleep(0.5)
    os.kill(sandbox.entry.init[0], signal.SIGKILL)
    running.cancel()
    with pytest.raises(SandboxLost, match="first process"):
        await sandbox.exec("true")


async def test_it_is_called_as_its_manual_says(provider, enroot, tmp_path):
    (tmp_path / "hidden").write_text("hidden")
    sandbox = await provider.start(SPEC, mounts=[Mount(tmp_path / "hidden", "/opt/tests/hidden")])
    seen = await sandbox.exec("cat /opt/tests/hidden; echo x > /opt/tests/hidden")
    assert seen.stdout == b"hidden" and not seen.ok
    create, start, execute = (
        next(one for one in enroot.calls if one.startswith(call)) for call in ("create", "start", "exec")
    )
    assert create.startswith(f"create --name {sandbox.id} -- /")
    assert start.startswith("start --rw --rc /") and ":/opt/tests/hidden:none:x-create=auto,bind,ro" in start
    assert f"-- {sandbox.id} /bin/sh -c" in start
    assert execute.startswith(f"exec -- {sandbox.entry.init[0]} /bin/sh -c")
    await sandbox.stop()
    with pytest.raises(SandboxUnsupported, match="space or colon"):
        await provider.start(SPEC, mounts=[Mount(tmp_path / "hidden", "/opt/a b")])


@pytest.mark.parametrize(
    ("call", "says"), [("create", "did not unpack"), ("start", "did not start"), ("exec", "no command runs")]
)
async def test_a_call_that_fails_is_no_sandbox_to_be_had_and_leaves_nothing(provider, enroot, call, says):
    enroot.fail(call, "told to fail")
    with pytest.raises(SandboxUnavailable, match=rf"{says}.*\[ERROR\] told to fail"):
        await provider.start(SPEC)
    assert await provider.list() == [] and not [*Path("/tmp").glob("gymflow-????????????????-*/data")]


async def test_what_enroot_lacks_is_refused_before_it_is_called(provider, enroot):
    for match, changes in [
        ("network: none", {"network": "none"}),
        ("limits.disk_mib", {"limits": SandboxLimits(disk_mib=9)}),
        ("user: root", {"user": "root"}),
        ("no option colour", {"options": {"colour": "red"}}),
        ("enroot import --output", {"image": "docker://debian:12"}),
        ("absolute path", {"image": "image.sqsh"}),
    ]:
        with pytest.raises(SandboxUnsupported, match=match):
            await provider.start(SPEC.model_copy(update=changes))
    for image, says in [("/no/such/image.sqsh", "not here"), ("/etc/passwd", "gym sandbox image --provider enroot")]:
        with pytest.raises(SandboxUnavailable, match=says):
            await provider.start(SPEC.model_copy(update={"image": image}))
    assert not (enroot.folder / "calls").exists()


async def test_an_image_of_ours_is_found_by_its_name(provider, squashed, monkeypatch):
    monkeypatch.setenv("GYMFLOW_IMAGES", str(squashed.parent))
    sandbox = await provider.start(SPEC.model_copy(update={"image": "tiny"}))
    assert (await sandbox.exec("echo here")).stdout == b"here\n"
    await sandbox.stop()
    assert await provider.image_identity("tiny") == await provider.image_identity(str(squashed))
    assert len(await provider.image_identity("tiny")) == 64


async def test_a_machine_without_it_is_told_what_to_do(provider, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(SandboxUnavailable, match=r"enroot is not on PATH.*installation\.md"):
        await provider.start(SPEC)


async def test_a_run_that_demands_full_isolation_does_not_get_it(monkeypatch):
    monkeypatch.delenv("GYMFLOW_ISOLATION", raising=False)
    with pytest.raises(SandboxUnavailable, match=r"isolates only in part.*GYMFLOW_ISOLATION=weak"):
        registered("enroot")
    monkeypatch.setenv("GYMFLOW_ISOLATION", "weak")
    assert registered("enroot").name == "enroot"
    monkeypatch.setenv("GYMFLOW_ISOLATION", "half")
    with pytest.raises(InputError):
        registered("docker")
