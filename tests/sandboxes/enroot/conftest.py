"""An `enroot` on PATH that keeps the command line of the real one, which cannot be had here (see the script beside this)."""

import asyncio
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import images
from gymflow.sandboxes.enroot import EnrootProvider


class Stand:
    """Where the command lies; what it was called with, and what it shall fail with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def fail(self, call: str, message: str) -> None:
        (self.folder / "fault").write_text(f"{call} {message}\n")


@pytest.fixture(scope="session")
def squashed(tmp_path_factory):
    """A small image of ours."""
    if shutil.which("busybox") is None:
        pytest.skip("busybox is not installed")
    folder = tmp_path_factory.mktemp("enroot-images")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GYMFLOW_IMAGES", str(folder))
        asyncio.run(images.build(images.Recipe(name="tiny", base="busybox")))
        root = images.rootfs("tiny")
    with tarfile.open(folder / "tiny.sqsh", "w") as tar:
        tar.add(root, arcname=".")
    return folder / "tiny.sqsh"


@pytest.fixture
def enroot(monkeypatch, squashed):
    """The command, in a folder that every user may come to."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("util-linux is not installed")
    folder = Path(f"/tmp/gymflow-test-enroot-{os.getpid()}")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    shutil.copy(Path(__file__).with_name("enroot"), folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GYMFLOW_ENROOT_IMAGE", str(squashed))
    yield Stand(folder)
    shutil.rmtree(folder)


@pytest.fixture
async def provider(enroot):
    made = EnrootProvider()
    yield made
    await made.close()


@pytest.fixture
async def sandbox(provider):
    started = await provider.start(SandboxSpec(provider="enroot", network="open"))
    yield started
    await started.stop()
