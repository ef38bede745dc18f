"""The `apptainer` provider beyond what every provider does: images, killed runs, machines without it."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess

import pytest

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import Capability, SandboxLost, SandboxUnavailable, SandboxUnsupported, images
from gymflow.sandboxes.apptainer import ApptainerProvider
from gymflow.sandboxes.interface import Mount
from gymflow.sandboxes.local import cgroups

SPEC = SandboxSpec(provider="apptainer")
DEFINITION = """
Bootstrap: localimage
From: {root}
%environment
    export COLOUR=red
    export PATH=/opt/tool/bin:$PATH
%startscript
    touch /tmp/startscript-ran
"""


async def test_a_machine_without_it_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"apptainer is not on PATH.*installation"):
        await ApptainerProvider().start(SPEC)


@pytest.mark.parametrize(
    ("image", "error", "says"),
    [
        ("docker://debian:12", SandboxUnsupported, "apptainer pull image.sif docker://debian:12"),
        ("image.sif", SandboxUnsupported, "absolute path"),
        ("/no/such/image.sif", SandboxUnavailable, "not here"),
        ("never-built", SandboxUnavailable, "gym sandbox image"),
        ("host", SandboxUnsupported, "no image `host`"),
    ],
)
async def test_an_image_that_cannot_be_had_is_said_with_what_to_do(monkeypatch, tmp_path, image, error, says):
    (tmp_path / "apptainer").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GYMFLOW_IMAGES", str(tmp_path))
    with pytest.raises(error, match=says):
        await ApptainerProvider().start(SPEC.model_copy(update={"image": image}))


@pytest.fixture
def sif(apptainer, tmp_path):
    """A file such as `apptainer build` makes from a container image: variables, a start script, a folder of work."""
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", images.rootfs(os.environ["GYMFLOW_APPTAINER_IMAGE"]), root], check=True)
    (root / "testbed").mkdir()
    (root / "testbed" / "file").write_text("of the image")
    (tmp_path / "definition").write_text(DEFINITION.format(root=root))
    made = subprocess.run(["apptainer", "build", tmp_path / "image.sif", tmp_path / "definition"], capture_output=True)
    assert made.returncode == 0, made.stderr.decode()
    return str(tmp_path / "image.sif")


@pytest.mark.slow
async def test_a_sif_files_variables_hold_its_start_script_does_not_run_and_its_folders_can_be_written(apptainer, sif):
    sandbox = await apptainer.start(SPEC.model_copy(update={"image": sif, "workdir": "/testbed"}))
    result = await sandbox.exec("echo $COLOUR ${PATH%%:*} $LANG; cat file; echo; echo new > file; cat file; ls -A /tmp")
    assert result.stdout == b"red /opt/tool/bin C.UTF-8\nof the image\nnew\n"
    await sandbox.stop()
    again = await apptainer.start(SPEC.model_copy(update={"image": sif}))
    assert (await again.exec("pwd; cat /testbed/file")).stdout == b"/work\nof the image"
    await again.stop()
    assert len(await apptainer.image_identity(sif)) == 64


@pytest.mark.slow
async def test_a_mount_is_read_only_and_its_path_may_be_odd_and_out_of_reach(apptainer, tmp_path):
    folder = tmp_path / 'a "b", c'
    folder.mkdir(mode=0o700)
    (folder / "tests").mkdir()
    (folder / "tests" / "hidden.py").write_text("hidden")
    sandbox = await apptainer.start(SPEC, mounts=[Mount(folder / "tests", "/opt/hidden tests")])
    result = await sandbox.exec("cat '/opt/hidden tests/hidden.py'; echo x > '/opt/hidden tests/hidden.py'")
    assert result.stdout == b"hidden" and result.exit_code == 1
    await sandbox.stop()


@pytest.mark.slow
async def test_a_start_that_is_cancelled_leaves_no_instance_without_control_groups(apptainer, monkeypatch):
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    for delay in (0.05, 0.2, 0.4, 0.8):
        starting = asyncio.ensure_future(apptainer.start(SPEC))
        await asyncio.sleep(delay)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).stop()
    await asyncio.sleep(0.5)
    shown = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True).stdout
    assert not re.search(r"Apptainer instance: \S+ \[gymflow", shown), shown
    assert await apptainer.list() == []


@pytest.mark.slow
async def test_an_instance_whose_first_process_is_killed_is_lost_and_not_a_return_code(apptainer):
    sandbox = await apptainer.start(SPEC)
    running = asyncio.ensure_future(sandbox.exec("sleep 60"))
    await asyncio.sleep(0.3)
    os.kill(sandbox.entry.init[0], signal.SIGKILL)
    with pytest.raises(SandboxLost, match="killed"):
        await running
    await sandbox.stop()


@pytest.mark.slow
async def test_without_control_groups_the_tree_still_ends_and_stop_leaves_nothing(apptainer, monkeypatch):
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    assert Capability.WALL_LIMIT not in apptainer.capabilities
    sandbox = await apptainer.start(SPEC)
    result = await sandbox.exec("setsid sleep 6001 & (setsid sleep 6002 &) ; sleep 6003", timeout_s=0.5)
    assert result.outcome == "timeout"
    assert b"sleep 600" not in (await sandbox.exec("ps -o args")).stdout
    await sandbox.exec("setsid sleep 6004 >/dev/null 2>&1 &")
    await sandbox.stop()
    shown = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True).stdout
    assert "sleep 6004" not in shown and sandbox.id not in shown
