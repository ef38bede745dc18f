"""One writer at a time, whoever dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gymflow.errors import RunLocked
from gymflow.store import Store
from gymflow.store.lease import Lease, held

HOLDER = """
import sys, time
from gymflow.store.lease import Lease
lease = Lease(__import__("pathlib").Path(sys.argv[1]), "r")
print("held", flush=True)
time.sleep(600)
"""


def holder(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


async def test_a_second_process_is_refused_by_name_and_takes_over_from_a_dead_one(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    process = holder(store.layout.run("r").lease)
    try:
        with pytest.raises(RunLocked, match=rf"run r is being written by process {process.pid} on .* since 20"):
            async with store.writer("r"):
                pass
        assert store.run("r").being_written
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not store.run("r").being_written
    async with store.writer("r") as writer:
        await writer.commit(build.record("r", 0))


async def test_a_second_writer_in_the_same_process_is_refused(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    async with store.writer("r"):
        with pytest.raises(RunLocked, match=f"process {os.getpid()}"):
            async with store.writer("r"):
                pass
    async with store.writer("r"):
        pass


async def test_an_exception_gives_the_lease_back(store: Store, build: Any) -> None:
    build.run(store, "r", 1)
    with pytest.raises(ZeroDivisionError):
        async with store.writer("r"):
            raise ZeroDivisionError
    assert not store.run("r").being_written


def test_a_forked_worker_that_outlives_its_parent_does_not_keep_the_lease(tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    lease = Lease(path, "r")
    read, write = os.pipe()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.write(tell, b"!")
        os.read(read, 1)
        os._exit(0)
    try:
        assert os.read(told, 1) == b"!"
        assert held(path)
        lease.release()
        assert not held(path)
    finally:
        os.close(write)
        os.waitpid(child, 0)
        for descriptor in (read, told, tell):
            os.close(descriptor)


def test_a_lease_on_a_file_that_its_owner_removed_keeps_nobody_out(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "merge.lock"
    first = Lease(path, "r")
    opened = os.open

    def removed_after(*arguments: Any) -> int:
        descriptor = opened(*arguments)
        first.release(remove=True)
        return descriptor

    monkeypatch.setattr(os, "open", removed_after)
    with pytest.raises(RunLocked):
        Lease(path, "r")
    monkeypatch.undo()
    second = Lease(path, "r")
    assert held(path)
    second.release()
