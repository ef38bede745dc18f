"""`local`: what an agent can reach from inside, and what it can do to its own sandbox."""

import asyncio
import errno
import subprocess
import sys
import textwrap
import time

import pytest
from pydantic import ValidationError

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import SandboxLost, SandboxUnsupported, archive, close_providers, open_sandbox, run_once
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.sandboxes.local.registered import remove_folder

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

KEYS = textwrap.dedent("""
    import asyncio, ctypes, os
    from gymflow.contracts.sandbox import SandboxSpec
    from gymflow.sandboxes.local import LocalProvider
    KEYCTL, ADD_KEY = {"x86_64": (250, 248), "aarch64": (219, 217)}[os.uname().machine]
    libc = ctypes.CDLL(None)
    if libc.syscall(KEYCTL, 1, None) < 0 or libc.syscall(ADD_KEY, b"user", b"token", b"secret", 6, -3) < 0:
        raise SystemExit("no keys here")
    call = f"import ctypes; libc = ctypes.CDLL(None); print(libc.syscall({KEYCTL}, 10, -3, b'user', b'%s', 0))"
    leave = f"import ctypes; print(ctypes.CDLL(None).syscall({ADD_KEY}, b'user', b'note', b'x', 1, -3))"

    async def main():
        provider = LocalProvider()
        sandbox = await provider.start(SandboxSpec())
        for line in (call % "token", leave):
            print((await provider.run(SandboxSpec(), ["python3", "-c", line])).stdout.decode().strip())
            print((await sandbox.exec(["python3", "-c", line])).stdout.decode().strip())
        print((await sandbox.exec(["python3", "-c", call % "note"])).stdout.decode().strip())
        await sandbox.stop()

    asyncio.run(main())
""")
SOCKETS = """
import socket
for family in (1, 2, 10, 16, 17, 31, 38, 40):
    try:
        socket.socket(family, socket.SOCK_RAW if family == 16 else socket.SOCK_SEQPACKET if family == 38 else socket.SOCK_STREAM)
        print(family, 'made')
    except OSError as error:
        print(family, error.errno)
"""


@pytest.fixture
async def sandbox():
    started = await LocalProvider().start(SandboxSpec(limits=SandboxLimits(disk_mib=32, processes=64)))
    yield started
    await started.stop()


def test_no_key_of_the_session_is_found_and_none_can_be_left_for_another():
    done = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, timeout=60)
    if "no keys here" in done.stderr:
        pytest.skip("this kernel keeps no keys, or lets us have none")
    assert done.stdout.split() == ["-1"] * 5, done.stderr


async def test_only_sockets_that_a_network_namespace_holds_can_be_made(sandbox):
    shot = await LocalProvider().run(SandboxSpec(), ["python3", "-c", SOCKETS])
    entered = await sandbox.exec(["python3", "-c", SOCKETS])
    for result in (shot, entered):
        found = dict(line.split() for line in result.stdout.decode().splitlines())
        assert {family for family, end in found.items() if end == "made"} == {"1", "2", "10", "16"}
        assert found["40"] == found["38"] == str(errno.EAFNOSUPPORT)


async def test_the_disk_is_bounded_wherever_one_may_write(sandbox):
    folders = "/work /tmp /dev /dev/shm /home/agent /run / /opt/venv/lib"
    fill = f"for d in {folders}; do for i in 1 2 3; do dd if=/dev/zero of=$d/x$i bs=1M count=20; done; done 2>/dev/null; df -m"
    await sandbox.exec(fill)
    used = await sandbox.exec("cat /work/x* /tmp/x* /dev/x* /dev/shm/x* /run/x* /x* 2>/dev/null | wc -c")
    assert 24 << 20 <= int(used.stdout) <= 32 << 20
    mounts = (await sandbox.exec("cat /proc/mounts")).stdout.decode().splitlines()
    writable = {line.split()[1] for line in mounts if line.split()[2] == "tmpfs" and "rw" in line.split()[3].split(",")}
    assert writable == {"/", "/dev/shm"}


async def test_pseudo_terminals_and_devices_are_there(sandbox):
    line = "import os, pty; pty.openpty(); open('/dev/null', 'w').write('x'); assert os.read(os.open('/dev/urandom', 0), 4)"
    assert (await sandbox.exec(["python3", "-c", line])).ok
    assert (await sandbox.exec("echo x > /dev/shm/y; echo z > /dev/stdout")).stdout == b"z\n"


async def test_a_disk_without_a_limit_is_bounded_below_the_memory():
    sandbox = await LocalProvider().start(SandboxSpec(limits=SandboxLimits(memory_mib=128)))
    result = await sandbox.exec("dd if=/dev/zero of=big bs=1M count=300")
    assert result.outcome == "exited" and b"No space left" in result.stderr
    with pytest.raises(OSError) as caught:
        await sandbox.put("more", b"x" * (8 << 20))
    assert caught.value.errno == errno.ENOSPC
    await sandbox.stop()


async def test_a_sandbox_outlives_a_kill_of_everything(sandbox):
    waiting = asyncio.ensure_future(sandbox.exec("sleep 60"))
    await asyncio.sleep(0.2)
    await sandbox.exec("echo kept > file; kill -9 -1; kill -9 1; kill -STOP -1")
    assert (await waiting).outcome == "killed"
    assert await sandbox.get("file") == b"kept\n"
    assert (await sandbox.exec("echo alive")).stdout == b"alive\n"


async def test_processes_that_nobody_waits_for_do_not_use_up_the_limit(sandbox):
    line = "import os\nfor n in range(50):\n    if not os.fork():\n        if not os.fork(): os._exit(0)\n        os._exit(0)\n    os.wait()"
    for _ in range(2):
        assert (await sandbox.exec(["python3", "-c", line])).ok


async def test_what_no_more_process_can_be_had_for_is_said_and_not_a_failure():
    sandbox = await LocalProvider().start(SandboxSpec(limits=SandboxLimits(processes=4)))
    assert (await sandbox.exec("echo a | cat")).stdout == b"a\n"
    await sandbox.exec("for i in 1 2 3 4 5 6 7 8 9; do sleep 30 & done >/dev/null 2>&1")
    result = await sandbox.exec("echo x | cat")
    assert result.outcome == "exited" and (result.ok or result.exit_code)
    assert await sandbox.get_archive(".")
    await sandbox.stop()


async def test_folders_without_an_end_are_kept_as_far_as_they_can_be_handled(sandbox):
    line = "import os\nopen('top', 'w').write('x')\nfor n in range(3000):\n    os.mkdir('d'); os.chdir('d')"
    assert (await sandbox.exec(["python3", "-c", line])).ok
    started = time.monotonic()
    kept = await sandbox.get_archive(".")
    assert archive.read(kept) == {"top": b"x"} and time.monotonic() - started < 10
    await sandbox.put_archive("/tmp/again", kept)


@pytest.mark.parametrize(
    ("path", "number"),
    [("n" * 300, errno.ENAMETOOLONG), ("loop", errno.ELOOP), ("file/below", errno.ENOTDIR), ("closed/x", errno.EACCES)],
)
async def test_an_odd_path_is_the_files_fault_and_not_the_sandboxes(sandbox, path, number):
    await sandbox.exec("ln -s loop loop; echo > file; mkdir -m 0 closed")
    with pytest.raises(OSError) as caught:
        await sandbox.get(path)
    assert caught.value.errno == number


async def test_memory_of_another_process_is_not_a_file_to_read(sandbox):
    with pytest.raises(OSError):
        await sandbox.get("/proc/1/mem")


@pytest.mark.parametrize("length", [1, 250, 255])
async def test_a_name_as_long_as_a_name_may_be_can_be_put(sandbox, length):
    await sandbox.put("n" * length, b"x")
    assert await sandbox.get("n" * length) == b"x"
    assert (await sandbox.exec("ls -A | wc -l")).stdout.strip() == b"1"


def test_what_an_agent_left_is_removed_however_deep_and_locked_it_is(tmp_path):
    line = "import os\nfor n in range(3000):\n    os.mkdir('d'); os.chdir('d')\nos.chdir('/')"
    subprocess.run([sys.executable, "-c", line], cwd=tmp_path, check=True)
    (tmp_path / "d/locked").mkdir()
    (tmp_path / "d/locked/x").write_text("x")
    (tmp_path / "d/locked").chmod(0)
    remove_folder(tmp_path / "d")
    assert not list(tmp_path.iterdir())


# --- what cannot be had is refused at start ---


@pytest.mark.parametrize("user", ["nobody", "99999999999", "2147483648", "007", "1000:1000"])
async def test_a_user_that_there_cannot_be_is_refused(user):
    for start in (LocalProvider().start(SandboxSpec(user=user)), LocalProvider().run(SandboxSpec(user=user), "true")):
        with pytest.raises(SandboxUnsupported, match="has no user"):
            await start


@pytest.mark.parametrize("user", ["-1", "", "root\n", "a b", "²", "--x"])
def test_a_user_that_is_none_is_no_spec(user):
    with pytest.raises(ValidationError, match="neither a user's name nor number"):
        SandboxSpec(user=user)


@pytest.mark.parametrize("user", ["agent", "root", "0", "1001"])
async def test_users_that_there_are(user):
    result = await LocalProvider().run(SandboxSpec(user=user), "id -u; echo x > y")
    assert result.stdout.decode().strip() == {"agent": "1000", "root": "0"}.get(user, user) and result.exit_code == 0


@pytest.mark.parametrize("workdir", ["/usr/x", "/bin", "/proc/x", "/dev/x", "/sys", "/etc/alternatives/x"])
async def test_a_workdir_that_cannot_be_written_to_is_refused(workdir):
    with pytest.raises(SandboxUnsupported, match=f"workdir: {workdir} lies in"):
        await LocalProvider().start(SandboxSpec(workdir=workdir))


@pytest.mark.parametrize("workdir", ["//", "/work\n", "work", "/a/../b"])
def test_a_workdir_that_is_none_is_no_spec(workdir):
    with pytest.raises(ValidationError):
        SandboxSpec(workdir=workdir)


async def test_a_gateway_that_nobody_offers_is_refused():
    spec = SandboxSpec(network="gateway")
    with pytest.raises(SandboxUnsupported, match="network: gateway"):
        async with open_sandbox(spec):
            pass
    with pytest.raises(SandboxUnsupported, match="network: gateway"):
        await run_once(spec, "true")
    await close_providers()


async def test_a_single_command_ends_with_the_life_of_its_sandbox():
    spec = SandboxSpec(limits=SandboxLimits(wall_s=0.5))
    started = time.monotonic()
    with pytest.raises(SandboxLost, match=r"its 0\.5 s are over"):
        await LocalProvider().run(spec, "sleep 5", timeout_s=10)
    assert time.monotonic() - started < 4
    assert (await LocalProvider().run(spec, "sleep 5", timeout_s=0.2)).outcome == "timeout"


async def test_a_start_that_is_cancelled_leaves_no_task(caplog):
    for delay in (0, 0.005, 0.02):
        starting = asyncio.ensure_future(LocalProvider().start(SandboxSpec()))
        await asyncio.sleep(delay)
        starting.cancel()
        outcome = (await asyncio.gather(starting, return_exceptions=True))[0]
        if not isinstance(outcome, BaseException):
            await outcome.stop()
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if "Event.wait" in repr(task)]
    assert not left
