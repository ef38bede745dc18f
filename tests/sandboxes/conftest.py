"""The providers that the conformance suite runs against. `docker` needs a daemon (`scripts/docker-up`), `apptainer` a command
that `scripts/apptainer-up` fetches where there is none."""

import os
import subprocess
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import Capability, SandboxUnavailable, images
from gymflow.sandboxes.apptainer import ApptainerProvider
from gymflow.sandboxes.docker import DockerProvider
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap

SCRIPTS = Path(__file__).parents[2] / "scripts"
IMAGE = "gymflow/test-busybox"


def local_or_skip() -> LocalProvider:
    """The local provider; skips where this machine cannot isolate, and says why."""
    reason = bubblewrap()
    if isinstance(reason, str):
        pytest.skip(f"no local sandboxes here: {reason}")
    return LocalProvider()


@pytest.fixture(scope="session")
def docker_daemon():
    """A daemon that answers, started where none did; skips where there can be none."""
    started = subprocess.run([SCRIPTS / "docker-up"], capture_output=True, text=True)
    if started.returncode:
        pytest.skip(f"no docker here: {started.stderr.strip()[-300:]}")


async def docker_provider(monkeypatch) -> DockerProvider:
    """With a small image of ours, made when it is not there."""
    monkeypatch.setenv("GYMFLOW_DOCKER_IMAGE", IMAGE)
    made = DockerProvider()
    if await made.image_identity(None) == IMAGE:
        await images.build(images.Recipe(name=IMAGE, base="busybox"), "docker")
    return made


@pytest.fixture
async def docker(docker_daemon, monkeypatch):
    """The provider on a daemon that answers."""
    made = await docker_provider(monkeypatch)
    yield made
    await made.close()


@pytest.fixture(scope="session")
def images_folder(tmp_path_factory):
    """Where images lie that tests build once."""
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="session")
def apptainer_command():
    """The path of an Apptainer that works here; skips where there can be none."""
    fetched = subprocess.run([SCRIPTS / "apptainer-up"], capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"no apptainer here: {fetched.stderr.strip()[-300:]}")
    return Path(fetched.stdout.strip())


async def apptainer_provider(request, monkeypatch) -> ApptainerProvider:
    """With a small image of ours, made when it is not there."""
    command = request.getfixturevalue("apptainer_command")
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GYMFLOW_IMAGES", str(request.getfixturevalue("images_folder")))
    monkeypatch.setenv("GYMFLOW_APPTAINER_IMAGE", IMAGE)
    try:
        images.rootfs(IMAGE)
    except SandboxUnavailable:
        await images.build(images.Recipe(name=IMAGE, base="busybox"))
    return ApptainerProvider()


@pytest.fixture
async def apptainer(request, monkeypatch):
    """The provider on a machine that has the command."""
    made = await apptainer_provider(request, monkeypatch)
    yield made
    await made.close()


REAL = [
    "local",
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow]),
    pytest.param("apptainer", marks=pytest.mark.slow),
]


@pytest.fixture(params=REAL)
async def provider(request, monkeypatch):
    """Each provider that is real on this machine."""
    if request.param == "docker":
        request.getfixturevalue("docker_daemon")
        made = await docker_provider(monkeypatch)
    elif request.param == "apptainer":
        made = await apptainer_provider(request, monkeypatch)
    else:
        made = local_or_skip()
    yield made
    await made.close()


@pytest.fixture
def spec(provider):
    """The smallest spec of a provider."""
    return SandboxSpec(provider=provider.name)


@pytest.fixture
async def sandbox(provider, spec):
    """A started sandbox."""
    started = await provider.start(spec)
    yield started
    await started.stop()


@pytest.fixture
def needs(provider):
    """Skip a behaviour that a provider says it does not have."""

    def check(*wanted: Capability) -> None:
        for one in wanted:
            if one not in provider.capabilities:
                pytest.skip(f"{provider.name} does not have {one.name}")

    return check
