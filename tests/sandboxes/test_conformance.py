"""What every provider does alike. A behaviour is skipped only where the provider says that it lacks the capability."""

import asyncio
import io
import os
import socket
import tarfile
import time

import pytest

from gymflow.contracts.outcome import FailureKind
from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import (
    Capability,
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    SandboxUnsupported,
    TooLarge,
    UnsafePath,
    archive,
)

ALL_BYTES = bytes(range(256)) * 4


def limited(spec: SandboxSpec, **limits: object) -> SandboxSpec:
    return spec.model_copy(update={"limits": SandboxLimits(**limits)})


async def processes(sandbox) -> str:
    """Command lines of all processes inside, without any tool."""
    listing = 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline; echo; done 2>/dev/null'
    return (await sandbox.exec(listing)).stdout.decode()


# --- how commands end ---


@pytest.mark.parametrize("code", [0, 1, 42, 255])
async def test_exit_codes_are_the_commands_own(sandbox, code):
    result = await sandbox.exec(f"exit {code}")
    assert (result.outcome, result.exit_code) == ("exited", code)
    assert result.ok == (code == 0)


async def test_a_command_that_does_not_exist_is_127_and_no_exception(sandbox):
    assert (await sandbox.exec(["no-such-command"])).exit_code == 127
    assert (await sandbox.exec("no-such-command")).exit_code == 127


async def test_a_file_that_cannot_be_run_is_126(sandbox):
    await sandbox.put("data", b"x", mode=0o644)
    assert (await sandbox.exec(["./data"])).exit_code == 126


async def test_death_by_signal_is_128_plus_its_number(sandbox):
    assert (await sandbox.exec("kill -TERM $$")).exit_code == 143


async def test_sigkill_from_inside_is_killed_not_oom(sandbox):
    result = await sandbox.exec("kill -KILL $$")
    assert (result.outcome, result.exit_code) == ("killed", 137)


async def test_a_shell_line_is_interpreted_and_an_argument_vector_is_not(sandbox):
    assert (await sandbox.exec("echo $((6 * 7))")).stdout == b"42\n"
    assert (await sandbox.exec(["echo", "$((6 * 7)) ; > | '\""])).stdout == b"$((6 * 7)) ; > | '\"\n"


# --- output and input ---


async def test_stdout_and_stderr_are_separate(sandbox, needs):
    needs(Capability.SEPARATE_STDERR)
    result = await sandbox.exec("echo out; echo err >&2")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


async def test_output_bytes_are_exact(sandbox):
    await sandbox.put("bytes", ALL_BYTES)
    assert (await sandbox.exec(["cat", "bytes"])).stdout == ALL_BYTES


async def test_line_ends_survive(sandbox):
    assert (await sandbox.exec("printf 'a\\r\\nb\\rc'")).stdout == b"a\r\nb\rc"
    assert (await sandbox.exec("true")).stdout == b""


async def test_ten_thousand_lines_arrive_in_order(sandbox):
    result = await sandbox.exec("i=0; while [ $i -lt 10000 ]; do echo $i; i=$((i+1)); done")
    assert result.stdout == b"".join(b"%d\n" % i for i in range(10_000))


async def test_what_is_not_kept_is_drained_and_flagged(sandbox):
    result = await sandbox.exec("head -c 5000000 /dev/zero; echo end >&2", keep_bytes=1000)
    assert (result.ok, result.truncated) == (True, True)
    assert (len(result.stdout), result.stderr) == (1000, b"end\n")


async def test_a_command_that_floods_its_output_is_ended(provider, spec):
    sandbox = await provider.start(limited(spec, output_mib=1))
    try:
        result = await sandbox.exec("yes", timeout_s=30, keep_bytes=100)
        assert (result.outcome, len(result.stdout), result.truncated) == ("output_limit", 100, True)
        assert result.duration_s < 20
    finally:
        await sandbox.stop()


async def test_stdin_is_exact_and_ends(sandbox):
    assert (await sandbox.exec(["cat"], stdin=ALL_BYTES)).stdout == ALL_BYTES
    assert (await sandbox.exec("wc -c", stdin=b"x" * (1 << 20))).stdout.strip() == b"1048576"
    assert (await sandbox.exec(["cat"])).stdout == b""


async def test_fifty_megabytes_of_output_are_complete(sandbox):
    result = await sandbox.exec("head -c 50000000 /dev/zero", keep_bytes=64 << 20)
    assert len(result.stdout) == 50_000_000 and not result.truncated


async def test_a_background_child_that_holds_the_output_is_not_waited_for(sandbox):
    before = time.monotonic()
    result = await sandbox.exec("echo started; sleep 30 &")
    assert result.stdout == b"started\n"
    assert time.monotonic() - before < 10


# --- environment, folder, user ---


async def test_environment_values_arrive_as_they_are(sandbox):
    odd = {"A": "two words", "B": "a=b", "C": "line\nbreak", "D": "quote ' \" $HOME `id`", "E": "ünïcödé", "F": ""}
    result = await sandbox.exec("".join(f'printf "%s|" "${name}";' for name in odd), env=odd)
    assert result.stdout.decode() == "".join(f"{value}|" for value in odd.values())


async def test_the_specs_environment_is_there_and_a_commands_own_wins(provider, spec):
    sandbox = await provider.start(spec.model_copy(update={"env": {"COLOUR": "red", "SHAPE": "round"}}))
    try:
        assert (await sandbox.exec("echo $COLOUR $SHAPE", env={"SHAPE": "square"})).stdout == b"red square\n"
    finally:
        await sandbox.stop()


async def test_this_machines_environment_is_not_there(provider, spec, monkeypatch):
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-secret-of-the-host")
    sandbox = await provider.start(spec)
    try:
        seen = await sandbox.exec("env; for p in /proc/[0-9]*; do cat $p/environ 2>/dev/null; done")
        assert b"sk-secret-of-the-host" not in seen.stdout
    finally:
        await sandbox.stop()


async def test_commands_start_in_the_workdir_or_where_they_are_told(sandbox):
    assert (await sandbox.exec("pwd")).stdout.strip().decode() == sandbox.resolve("").rstrip("/")
    await sandbox.put("sub dir/x", b"")
    assert (await sandbox.exec("ls", cwd="sub dir")).stdout == b"x\n"
    assert (await sandbox.exec("pwd", cwd="/")).stdout == b"/\n"


async def test_a_folder_that_does_not_exist_is_said(sandbox):
    result = await sandbox.exec("true", cwd="/no/such/folder")
    assert not result.ok and result.stderr


async def test_commands_do_not_run_as_root_unless_asked(provider, sandbox, spec, needs):
    assert (await sandbox.exec("id -u")).stdout.strip() != b"0"
    needs(Capability.USER)
    root = await provider.start(spec.model_copy(update={"user": "root"}))
    try:
        assert (await root.exec("id -u")).stdout.strip() == b"0"
    finally:
        await root.stop()


async def test_files_stay_between_commands_and_variables_do_not(sandbox):
    await sandbox.exec("echo kept > file; export LOST=1")
    assert (await sandbox.exec("cat file; echo ${LOST-unset}")).stdout == b"kept\nunset\n"


# --- time, memory, processes ---


async def test_a_timeout_ends_the_whole_tree(sandbox, needs):
    needs(Capability.KILL_TREE)
    before = time.monotonic()
    line = "setsid sleep 3001 & (setsid sh -c 'setsid sleep 3002 &' &) ; trap '' TERM; echo begun; sleep 3003"
    result = await sandbox.exec(line, timeout_s=1)
    assert (result.outcome, result.stdout) == ("timeout", b"begun\n")
    assert time.monotonic() - before < 6
    assert "sleep 300" not in await processes(sandbox)


async def test_the_sandbox_is_usable_after_a_timeout(sandbox):
    await sandbox.exec("echo before > file; sleep 60", timeout_s=0.5)
    assert (await sandbox.exec("cat file")).stdout == b"before\n"


async def test_cancelling_a_command_ends_it(sandbox, needs):
    needs(Capability.KILL_TREE)
    task = asyncio.ensure_future(sandbox.exec("sleep 3004 & setsid sleep 3005 & sleep 3008"))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "sleep 300" not in await processes(sandbox)


async def test_a_background_process_lives_on_for_the_next_command(sandbox):
    await sandbox.exec("sleep 3006 >/dev/null 2>&1 &")
    assert "sleep 3006" in await processes(sandbox)


async def test_sixteen_concurrent_commands_keep_their_outputs_apart(sandbox):
    results = await asyncio.gather(*(sandbox.exec(f"echo {n}; sleep 0.2; echo {n}", timeout_s=60) for n in range(16)))
    assert [result.stdout for result in results] == [b"%d\n%d\n" % (n, n) for n in range(16)]


async def test_out_of_memory_is_told_apart_and_the_sandbox_lives(provider, spec, needs):
    needs(Capability.MEMORY_LIMIT, Capability.OOM_REPORT)
    sandbox = await provider.start(limited(spec, memory_mib=64))
    try:
        result = await sandbox.exec("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", timeout_s=60)
        assert result.outcome == "oom"
        assert (await sandbox.exec("echo alive")).stdout == b"alive\n"
        assert (await sandbox.exec("kill -KILL $$")).outcome == "killed"
    finally:
        await sandbox.stop()


async def test_a_fork_bomb_stays_inside(provider, spec, needs):
    needs(Capability.PROCESS_LIMIT)
    sandbox = await provider.start(limited(spec, processes=24, memory_mib=256))
    before = time.monotonic()
    await sandbox.exec("bomb() { bomb | bomb & }; bomb; sleep 2", timeout_s=2)
    await sandbox.stop()
    assert time.monotonic() - before < 30


async def test_the_process_limit_holds(provider, spec, needs):
    needs(Capability.PROCESS_LIMIT)
    sandbox = await provider.start(limited(spec, processes=16))
    try:
        line = "i=0; while [ $i -lt 40 ]; do sleep 20 >/dev/null 2>&1 & i=$((i+1)); done"
        result = await sandbox.exec(line, timeout_s=10)
        assert not result.ok and result.stderr
    finally:
        await sandbox.stop()


async def test_the_cpu_limit_holds(provider, spec, needs):
    needs(Capability.CPU_LIMIT, Capability.USAGE)
    sandbox = await provider.start(limited(spec, cpus=0.25))
    try:
        result = await sandbox.exec("while :; do :; done", timeout_s=2)
        assert result.usage.cpu_s is not None and result.usage.cpu_s < 1.2
    finally:
        await sandbox.stop()


async def test_the_disk_limit_holds(provider, spec, needs):
    needs(Capability.DISK_LIMIT)
    sandbox = await provider.start(limited(spec, disk_mib=8))
    try:
        line = "i=0; while [ $i -lt 16 ]; do head -c 1000000 /dev/zero > f$i || exit 9; i=$((i+1)); done"
        assert (await sandbox.exec(line)).exit_code == 9
    finally:
        await sandbox.stop()


async def test_usage_of_a_command_is_reported(sandbox, needs):
    needs(Capability.USAGE)
    result = await sandbox.exec("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    assert result.usage.cpu_s is not None and 0.01 < result.usage.cpu_s < 20


async def test_the_wall_limit_ends_the_sandbox(provider, spec, needs):
    needs(Capability.WALL_LIMIT)
    sandbox = await provider.start(limited(spec, wall_s=1))
    await asyncio.sleep(2)
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")
    assert sandbox.id not in [info.sandbox_id for info in await provider.list()]
    await sandbox.stop()


# --- network ---


async def test_there_is_no_network_by_default(sandbox, needs):
    needs(Capability.NETWORK_NONE)
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        listening.listen()
        port = listening.getsockname()[1]
        interfaces = await sandbox.exec("cat /proc/net/dev")
        assert sorted(line.split(":")[0].strip() for line in interfaces.stdout.decode().splitlines()[2:]) == ["lo"]
        assert (await sandbox.exec("cat /proc/net/route | tail -n +2")).stdout == b""
        for host in ("127.0.0.1", "10.255.255.53"):
            tried = await sandbox.exec(
                f"(exec 3<>/dev/tcp/{host}/{port}) 2>/dev/null || nc -w 1 {host} {port} </dev/null"
            )
            assert not tried.ok


async def test_the_gateway_is_reachable_where_asked_for_and_nothing_else(provider, spec, needs, tmp_path):
    needs(Capability.NETWORK_GATEWAY)

    async def answer(reader, writer):
        writer.write(b"from the gateway: " + await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, str(tmp_path / "gateway.sock"))
    sandbox = await provider.start(spec.model_copy(update={"network": "gateway"}), gateway=tmp_path / "gateway.sock")
    try:
        talk = """
            talk() { if command -v bash >/dev/null; then bash -c 'exec 3<>/dev/tcp/$0/$1; echo hello >&3; cat <&3' $1 $2
                     else echo hello | nc -w 2 $1 $2; fi }
            gateway=${GYMFLOW_GATEWAY#http://}
        """
        result = await sandbox.exec(talk + "talk ${gateway%:*} ${gateway#*:}")
        assert result.stdout == b"from the gateway: hello\n", result.stderr
        outside = await sandbox.exec(talk + "talk 10.255.255.53 53")
        assert not outside.ok
    finally:
        await sandbox.stop()
        server.close()


# --- files ---


@pytest.mark.parametrize("data", [b"", b"x", ALL_BYTES, b"0123456789" * 5_000_000], ids=["empty", "one", "all", "50MB"])
async def test_file_bytes_are_exact(sandbox, data):
    await sandbox.put("deep/er/file", data)
    assert await sandbox.get("deep/er/file") == data


async def test_a_files_mode_is_kept_and_an_old_file_replaced(sandbox):
    await sandbox.put("run.sh", b"#!/bin/sh\necho first", mode=0o755)
    assert (await sandbox.exec(["./run.sh"])).stdout == b"first\n"
    await sandbox.put("run.sh", b"#!/bin/sh\necho other", mode=0o755)
    assert (await sandbox.exec(["./run.sh"])).stdout == b"other\n"


@pytest.mark.parametrize("name", ["with space", "ünïcödé", "-leading", "new\nline", "quote'\"$(id)"])
async def test_odd_file_names(sandbox, name):
    await sandbox.put(name, b"content")
    assert await sandbox.get(name) == b"content"


async def test_the_sandboxs_user_owns_what_is_put(sandbox):
    await sandbox.put("folder/file", b"a")
    assert (await sandbox.exec("echo b >> folder/file && mv folder other && rm -r other")).ok


async def test_what_cannot_be_read_is_said_with_the_right_error(sandbox):
    await sandbox.exec("mkdir folder; mkfifo pipe; head -c 2000 /dev/zero > large")
    with pytest.raises(FileNotFoundError):
        await sandbox.get("missing")
    with pytest.raises(IsADirectoryError):
        await sandbox.get("folder")
    with pytest.raises(UnsafePath):
        await sandbox.get("pipe")
    with pytest.raises(TooLarge):
        await sandbox.get("large", max_bytes=1999)
    with pytest.raises(IsADirectoryError):
        await sandbox.put("folder", b"")


async def test_a_link_to_the_host_leads_nowhere(sandbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o644)
    await sandbox.exec(["ln", "-s", str(secret), "link"])
    with pytest.raises((FileNotFoundError, UnsafePath)):
        await sandbox.get("link")
    await sandbox.put("link", b"replaced")
    assert secret.read_text() == "of the host"
    with pytest.raises((FileNotFoundError, UnsafePath)):
        await sandbox.get(f"../../../../../../{secret}")


async def test_a_planted_link_does_not_redirect_what_is_put(sandbox):
    await sandbox.exec("mkdir real; ln -s real/target link")
    await sandbox.put("link", b"data")
    assert (await sandbox.exec("test -h link || echo file; ls real")).stdout == b"file\n"


async def test_put_reaches_memory_file_systems(sandbox):
    await sandbox.put("/tmp/on-tmpfs", b"here")
    assert (await sandbox.exec("cat /tmp/on-tmpfs")).stdout == b"here"


async def test_folders_come_and_go_as_archives(sandbox):
    await sandbox.put_archive("tree", archive.pack({"a.txt": "A", "sub/b.bin": ALL_BYTES}))
    await sandbox.exec(
        "ln -s a.txt tree/inside; ln -s /etc/passwd tree/outside; mkfifo tree/pipe; mkdir tree/.git; echo x > tree/.git/x"
    )
    packed = await sandbox.get_archive("tree", exclude=[".git"])
    assert archive.read(packed) == {"a.txt": b"A", "sub/b.bin": ALL_BYTES}
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        names = tar.getnames()
    assert "inside" in names and "outside" not in names and "pipe" not in names


async def test_equal_folders_give_equal_archives(sandbox):
    await sandbox.put_archive("one", archive.pack({"x/y": "1", "z": "2"}))
    await sandbox.put_archive("two", archive.pack({"z": "2", "x/y": "1"}))
    await sandbox.exec("touch -d '2001-01-01' one/z")
    assert await sandbox.get_archive("one") == await sandbox.get_archive("two")


async def test_an_archive_that_leads_outside_is_refused(sandbox):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("../../escape")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(UnsafePath):
        await sandbox.put_archive("tree", buffer.getvalue())


async def test_a_folder_larger_than_allowed_is_refused(sandbox):
    await sandbox.exec("mkdir big; head -c 3000000 /dev/zero > big/x; truncate -s 100G big/sparse 2>/dev/null || true")
    with pytest.raises(TooLarge):
        await sandbox.get_archive("big", max_bytes=1_000_000)
    with pytest.raises(FileNotFoundError):
        await sandbox.get_archive("no-such-folder")
    with pytest.raises(NotADirectoryError):
        await sandbox.get_archive("big/x")


# --- isolation ---


async def test_files_of_the_host_are_out_of_reach(sandbox, tmp_path):
    (tmp_path / "secret").write_text("of the host")
    tmp_path.chmod(0o777)
    assert not (await sandbox.exec(["cat", str(tmp_path / "secret")])).ok
    assert not (await sandbox.exec(f"ls {os.getcwd()} | grep pyproject")).ok
    assert not (await sandbox.exec("cat /root/.ssh/* /root/.bash_history /proc/1/root/etc/shadow")).ok


async def test_processes_of_the_host_are_out_of_reach(sandbox):
    assert "pytest" not in await processes(sandbox)
    assert not (await sandbox.exec(f"kill -0 {os.getpid()}")).ok


async def test_commands_have_no_capability_and_cannot_gain_one(sandbox):
    status = (await sandbox.exec("grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")).stdout.decode().split()
    assert status == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"] or status[:4] == [
        "CapBnd:", "0" * 16, "CapEff:", "0" * 16,
    ]  # fmt: skip
    assert not (await sandbox.exec("mount -t tmpfs none /tmp")).ok
    assert not (await sandbox.exec("unshare -Ur true")).ok


async def test_the_system_cannot_be_tampered_with(sandbox):
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/usr/bin/env"):
        assert not (await sandbox.exec(f"echo x > {path}")).ok, path


async def test_two_sandboxes_do_not_see_each_other(provider, spec, sandbox):
    other = await provider.start(spec)
    try:
        await sandbox.put("/tmp/mine", b"1")
        await sandbox.exec("sleep 3007 >/dev/null 2>&1 &")
        assert not (await other.exec("cat /tmp/mine")).ok
        assert "sleep 3007" not in await processes(other)
        assert sandbox.id != other.id
    finally:
        await other.stop()


# --- life ---


async def test_stop_is_idempotent_and_concurrent(provider, spec):
    sandbox = await provider.start(spec)
    await asyncio.gather(sandbox.stop(), sandbox.stop(), sandbox.stop())
    await sandbox.stop()
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")
    with pytest.raises(SandboxLost):
        await sandbox.put("x", b"")


async def test_stop_ends_a_running_command(provider, spec):
    sandbox = await provider.start(spec)
    task = asyncio.ensure_future(sandbox.exec("sleep 60", timeout_s=60))
    await asyncio.sleep(0.5)
    await sandbox.stop()
    with pytest.raises((SandboxLost, SandboxError)):
        await task


async def test_a_sandbox_that_is_removed_from_outside_is_lost_and_not_a_return_code(provider, spec):
    sandbox = await provider.start(spec)
    running = asyncio.ensure_future(sandbox.exec("echo begun; sleep 60", timeout_s=60))
    await asyncio.sleep(0.7)
    other = type(provider)()
    await other.remove(sandbox.id)
    with pytest.raises(SandboxLost) as lost:
        await running
    assert lost.value.kind == FailureKind.SANDBOX_UNAVAILABLE
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")
    await sandbox.stop()
    await other.close()


async def test_the_specs_files_are_there_at_start(provider, spec):
    sandbox = await provider.start(spec.model_copy(update={"files": {"task/readme.md": "read me", "/tmp/abs": "a"}}))
    try:
        assert (await sandbox.exec("cat task/readme.md /tmp/abs")).stdout == b"read mea"
    finally:
        await sandbox.stop()


async def test_a_sandbox_is_found_by_its_labels_and_removed_by_id(provider, spec):
    mine = {"gymflow.run": f"run-{os.getpid()}-{time.monotonic_ns()}"}
    sandbox = await provider.start(spec, labels=mine)
    found = await provider.list(mine)
    assert [info.sandbox_id for info in found] == [sandbox.id]
    assert found[0].labels["gymflow.run"] == mine["gymflow.run"] and "gymflow.owner" in found[0].labels
    await provider.remove(sandbox.id)
    await provider.remove(sandbox.id)
    assert await provider.list(mine) == []
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")
    await sandbox.stop()


async def test_an_unknown_option_is_refused(provider, spec):
    with pytest.raises(SandboxUnsupported, match="colour"):
        await provider.start(spec.model_copy(update={"options": {"colour": "red"}}))


async def test_an_unknown_image_is_unavailable_and_leaves_nothing(provider, spec):
    before = {info.sandbox_id for info in await provider.list()}
    with pytest.raises(SandboxUnavailable):
        await provider.start(spec.model_copy(update={"image": "no-such-image-anywhere:1"}))
    assert {info.sandbox_id for info in await provider.list()} == before


async def test_a_cancelled_start_leaves_nothing(provider, spec):
    mine = {"gymflow.run": f"cancelled-{time.monotonic_ns()}"}
    for delay in (0.0, 0.01, 0.05, 0.3):
        task = asyncio.ensure_future(provider.start(spec, labels=mine))
        await asyncio.sleep(delay)
        task.cancel()
        try:
            await (await task).stop()
        except asyncio.CancelledError:
            pass
    assert await provider.list(mine) == []


async def test_a_command_in_one_go(provider, spec):
    result = await provider.run(spec, "cat in.txt - ; pwd; exit 3", files={"in.txt": b"file "}, stdin=b"stdin ")
    assert (result.outcome, result.exit_code) == ("exited", 3)
    assert result.stdout.startswith(b"file stdin ")
    assert (await provider.run(spec, "sleep 60", timeout_s=0.5)).outcome == "timeout"
    assert (await provider.run(spec, ["no-such-command"])).exit_code == 127
