"""The providers that the conformance suite runs against. `docker` needs a daemon (`scripts/docker-up`)."""

import subprocess
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import Capability, images
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


@pytest.fixture(params=["local", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow])])
async def provider(request, monkeypatch):
    """Each provider that is real on this machine."""
    if request.param == "docker":
        request.getfixturevalue("docker_daemon")
        made = await docker_provider(monkeypatch)
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
