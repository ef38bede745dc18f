"""`opensandbox` against OpenSandbox's own server on this machine's Docker; only the daemon in the sandbox is a stand-in
(`execd.py`)."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import SandboxLost, SandboxUnavailable, images

pytestmark = [pytest.mark.slow, pytest.mark.docker]

SCRIPTS = Path(__file__).parents[3] / "scripts"
PYTHON_IMAGE, DAEMON_IMAGE = "gymflow/test-opensandbox", "gymflow/test-execd"
KEY = "os-test-key"
BOOTSTRAP = '#!/bin/sh\n/opt/opensandbox/execd &\nexec "$@"\n'
CONFIG = """
[server]
host = "127.0.0.1"
port = {port}
api_key = "{key}"
[log]
level = "WARNING"
[runtime]
type = "docker"
execd_image = "{image}"
[docker]
network_mode = "bridge"
publish_host = "127.0.0.1"
[ingress]
mode = "direct"
[store]
type = "sqlite"
path = "{store}"
"""
SKIPPED = shutil.ignore_patterns("test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "site-packages", "__pycache__", "config-*", "pydoc_data", "distutils")  # fmt: skip


def python_of_this_machine() -> Path:
    return Path(os.path.realpath(sys.executable))


async def build_images(folder: Path) -> None:
    """An image with the Python of this machine, which the stand-in needs, and the image that the server takes it from."""
    os.environ["GYMFLOW_IMAGES"] = str(folder)
    await images.build(images.Recipe(name=PYTHON_IMAGE, base="busybox"))
    root, python = images.rootfs(PYTHON_IMAGE), python_of_this_machine()
    assert root is not None
    library = Path(os.__file__).parent
    shutil.copytree(library, root / str(library)[1:], ignore=SKIPPED, dirs_exist_ok=True)
    needed = {python}
    for binary in (python, *library.glob("lib-dynload/*.so")):
        told = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
        needed |= {Path(path) for path in re.findall(r"(/\S+) \(0x", told)}
    for path in needed:
        target = root / str(path)[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    await images._import(PYTHON_IMAGE, root)
    execd = Path(__file__).with_name("execd.py").read_text()
    for name, text in {"execd": f"#!{python}\n{execd}", "bootstrap.sh": BOOTSTRAP}.items():
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    await images._import(DAEMON_IMAGE, root)


@pytest.fixture(scope="module")
def own_server(docker_daemon, tmp_path_factory):
    """The server's address; skips where it cannot be installed."""
    pytest.importorskip("opensandbox")
    installed = subprocess.run([SCRIPTS / "opensandbox-up", sys.executable], capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"no OpenSandbox server here: {installed.stderr.strip()[-300:]}")
    folder = tmp_path_factory.mktemp("opensandbox")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GYMFLOW_IMAGES", str(folder / "images"))
        asyncio.run(build_images(folder / "images"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "config.toml"
    config.write_text(CONFIG.format(port=port, key=KEY, image=f"{DAEMON_IMAGE}:latest", store=folder / "store.db"))
    log = (folder / "log").open("w")
    server = subprocess.Popen(
        [installed.stdout.strip(), "--config", config], stdout=log, stderr=log, cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while not _answers(port):
            assert server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[-2000:]
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture
async def own(own_server, monkeypatch):
    from gymflow.sandboxes.opensandbox import OpenSandboxProvider

    monkeypatch.setenv("OPEN_SANDBOX_DOMAIN", own_server)
    monkeypatch.setenv("OPEN_SANDBOX_API_KEY", KEY)
    monkeypatch.setenv("GYMFLOW_OPENSANDBOX_IMAGE", f"{PYTHON_IMAGE}:latest")
    made = OpenSandboxProvider()
    yield made
    await made.close()


async def test_a_sandbox_of_the_servers_own(own):
    limits = SandboxLimits(memory_mib=256, cpus=0.5, wall_s=120)
    spec = SandboxSpec(
        provider="opensandbox", network="open", limits=limits, files={"a/in.txt": "input"}, env={"A": "b"}
    )
    sandbox = await own.start(spec, labels={"gymflow.run": "own-server"})
    try:
        result = await sandbox.exec("id -u; pwd; echo $A; cat a/in.txt; printf '\\377' >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr) == (3, b"1000\n/work\nb\ninput", b"\xff")
        data = bytes(range(256)) * 8000
        await sandbox.put("data", data)
        assert await sandbox.get("data") == data
        assert (await sandbox.exec(["cat"], stdin=data, keep_bytes=4 << 20)).stdout == data
        ended = await sandbox.exec("echo begun; setsid sleep 8101 & sleep 8102", timeout_s=1)
        assert (ended.outcome, ended.stdout) == ("timeout", b"begun\n")
        assert b"sleep 810" not in (await sandbox.exec("ps -o args")).stdout
        greedy = await sandbox.exec("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", timeout_s=60)
        assert greedy.outcome == "oom"
        assert [info.sandbox_id for info in await own.list({"gymflow.run": "own-server"})] == [sandbox.id]
    finally:
        await asyncio.gather(sandbox.stop(), sandbox.stop())
    assert await own.list({"gymflow.run": "own-server"}) == []
    with pytest.raises(SandboxLost):
        await sandbox.exec("true")


async def test_a_sandbox_that_is_removed_from_outside_is_lost(own):
    sandbox = await own.start(SandboxSpec(provider="opensandbox", network="open"))
    running = asyncio.ensure_future(sandbox.exec("sleep 60"))
    await asyncio.sleep(1)
    await own.remove(sandbox.id)
    with pytest.raises(SandboxLost):
        await running
    await sandbox.stop()


async def test_what_the_server_cannot_have_is_told_and_leaves_nothing(own):
    with pytest.raises(SandboxUnavailable, match="no-such-image"):
        await own.start(SandboxSpec(provider="opensandbox", network="open", image="no-such-image:1"))
    # This server has no egress control, so a closed network is refused and not forgotten.
    with pytest.raises(SandboxUnavailable, match=r"(?i)egress"):
        await own.start(SandboxSpec(provider="opensandbox"))
    assert await own.list() == []
