"""The providers that the conformance suite runs against. `docker` needs a daemon (`scripts/docker-up`)."""

import pytest

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import Capability
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap


def local_or_skip() -> LocalProvider:
    """The local provider; skips where this machine cannot isolate, and says why."""
    reason = bubblewrap()
    if isinstance(reason, str):
        pytest.skip(f"no local sandboxes here: {reason}")
    return LocalProvider()


@pytest.fixture(params=["local", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow])])
async def provider(request):
    """Each provider that is real on this machine."""
    if request.param == "local":
        made = local_or_skip()
    else:
        docker = pytest.importorskip("gymflow.sandboxes.docker", reason="docker extra not installed")
        made = docker.DockerProvider()
        if (problem := await made.problem()) is not None:
            pytest.skip(f"no docker here: {problem}")
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
