"""Nothing is left of a thousand sandboxes: no process, control group, mount, container, folder or open descriptor, also where
the processes that started them were killed."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gymflow.sandboxes import OWNER
from gymflow.sandboxes.labels import Owner
from gymflow.sandboxes.local import cgroups, state

pytestmark = pytest.mark.slow

WORKER = textwrap.dedent("""
    import asyncio, json, os, sys, threading
    from gymflow.contracts.sandbox import SandboxSpec
    from gymflow.sandboxes import close_providers, provider as provider_of

    async def main(name, mark, count):
        provider, spec = provider_of(name), SandboxSpec(provider=name, env={"LEAK": mark})
        places = asyncio.Semaphore(4)

        async def one(number):
            async with places:
                if number % 4:
                    await provider.run(spec, "setsid sleep 600 & (setsid sleep 600 &)")
                else:
                    sandbox = await provider.start(spec)
                    await sandbox.exec("setsid sleep 600 >/dev/null 2>&1 &")
                    await sandbox.stop()
                print(number, flush=True)

        await one(0)
        held = lambda: {"descriptors": len(os.listdir("/proc/self/fd")), "threads": threading.active_count()}
        before = held()
        await asyncio.gather(*(one(number) for number in range(1, count)))
        print(json.dumps([before, held()]), flush=True)
        await close_providers()

    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
""")


class Machine:
    """What of some workers can be seen on this machine."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder, self.mark, self.pids = folder, mark, set()

    def left(self) -> list[str]:
        tree = cgroups.detect()
        groups = [g for base in (tree.folders() if tree else []) for pid in self.pids for g in base.glob(f"p{pid}-*")]
        found = [f"group {group}" for group in groups]
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"LEAK={self.mark}".encode() in path.read_bytes():
                    found.append(f"process {path.parent.name}")
            except OSError:
                continue
        found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if self.folder.name in line]
        # The two folders that hold what is written down and what is shown are one a machine, and empty.
        found += [f"file {path}" for path in self.folder.rglob("*") if path.name not in ("gymflow-stage", f"gymflow-{os.getuid()}")]  # fmt: skip
        return found


def ended(provider, machine: Machine, count: int, after: int | None) -> tuple[int, list]:
    """Let a worker make `count` sandboxes, or kill it after some; how many it ended, and what it held before and after."""
    done, held = 0, []
    command = [sys.executable, "-c", WORKER, provider.name, machine.mark, str(count)]
    environment = {**os.environ, "TMPDIR": str(machine.folder), "XDG_RUNTIME_DIR": str(machine.folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        machine.pids.add(process.pid)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("["):
                held = json.loads(line)
                continue
            done += 1
            if done == after:
                process.kill()
                break
    assert process.returncode == (-9 if after else 0)
    return done, held


MANY = (160, [None, 110, 119, None, 127, 134, 142, 151])
FEW = (10, [None, 3, None, 5])
"""How many sandboxes a worker would start, and after how many it is killed: 1103 in all, and 28 where each takes a second."""


async def test_nothing_is_left_of_many_sandboxes_and_killed_runs(provider, monkeypatch):
    each, ends = MANY if provider.name == "local" else FEW
    folder = Path("/tmp") / f"leaks-{os.getpid()}-{provider.name}"
    folder.mkdir()
    folder.chmod(0o777)
    machine = Machine(folder, f"{os.getpid()}-{time.monotonic_ns()}")
    try:
        with ThreadPoolExecutor(2) as two:
            results = [*two.map(lambda after: ended(provider, machine, each, after), ends)]
        done = sum(count for count, _ in results)
        assert done >= sum(after or each for after in ends)
        held = [both for _, both in results if both]
        assert len(held) == ends.count(None)
        # A client keeps a connection open for each of the four that run at one time.
        assert all(after[what] < before[what] + 4 for before, after in held for what in before), held
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        state.folder.cache_clear()
        other = type(provider)()
        for _ in range(50):  # a daemon may finish making what a killed run had asked it for
            await other.clean()
            owners = [Owner.parse(info.labels[OWNER]) for info in await other.list()]
            if not (orphans := {owner.pid for owner in owners if owner} & machine.pids):
                break
            await asyncio.sleep(0.2)
        assert not orphans
        await other.close()
        for _ in range(100):
            if not (left := machine.left()):
                break
            await asyncio.sleep(0.1)
        assert left == [], f"of {done} sandboxes"
    finally:
        state.folder.cache_clear()
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
