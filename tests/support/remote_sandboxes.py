"""What a sandbox behind somebody else's exec must do, whoever that is. A provider's test module imports these tests beside its
own; `sandbox` is its conftest's."""

import asyncio

import pytest

ALL_BYTES = bytes(range(256)) * 4


async def test_files_go_there_and_back(sandbox):
    for name, data in {"a/b c/ü.bin": ALL_BYTES * 1000, "empty": b"", "/tmp/absolute": b"x"}.items():
        await sandbox.put(name, data, mode=0o640)
        assert await sandbox.get(name) == data
    assert (await sandbox.exec("stat -c %a empty")).stdout == b"640\n"
    with pytest.raises(FileNotFoundError):
        await sandbox.get("no-such-file")
    with pytest.raises(IsADirectoryError):
        await sandbox.get("a")


async def test_a_command_longer_than_an_argument_may_be_is_run(sandbox):
    line = ": " + "x" * 110_000 + "; echo done"
    assert (await sandbox.exec(line)).stdout == b"done\n"


async def test_a_timeout_is_an_outcome_and_ends_the_tree(sandbox):
    result = await sandbox.exec("echo begun; setsid sleep 86401 & sleep 86401", timeout_s=0.5)
    assert (result.outcome, result.stdout) == ("timeout", b"begun\n")
    left = await sandbox.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert b"86401" not in left.stdout.replace(b"cat", b"")


async def test_a_cancelled_command_is_ended_there(sandbox):
    running = asyncio.ensure_future(sandbox.exec("sleep 86402"))
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert b"sleep 86402" not in (await sandbox.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).stdout
