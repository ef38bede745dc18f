"""What only `docker` does: what is arranged inside a container from outside."""

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import Mount, SandboxUnsupported
from gymflow.sandboxes.docker import inside

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def spec():
    return SandboxSpec(provider="docker", limits=SandboxLimits(disk_mib=16))


@pytest.fixture
async def docker(docker_daemon, monkeypatch):
    from gymflow.sandboxes import Capability, images
    from gymflow.sandboxes.docker import DockerProvider

    image = "gymflow/test-busybox"
    monkeypatch.setenv("GYMFLOW_DOCKER_IMAGE", image)
    made = DockerProvider()
    if Capability.DISK_LIMIT not in made.capabilities:
        pytest.skip("only root may enter containers")
    if await made.image_identity(None) == image:
        await images.build(images.Recipe(name=image, base="busybox"), "docker")
    yield made
    await made.close()


async def test_one_bound_holds_for_all_that_can_be_written(docker, spec):
    sandbox = await docker.start(spec)
    try:
        line = "for d in /work /tmp $HOME /dev/shm; do head -c 5000000 /dev/zero >$d/f || echo full $d; done"
        result = await sandbox.exec(line)
        assert result.stdout == b"full /dev/shm\n"
        assert (await sandbox.exec("rm /tmp/f; head -c 4000000 /dev/zero >/dev/shm/f")).ok
        await sandbox.put("/work/in", b"x")
        assert await sandbox.get("in") == b"x"
    finally:
        await sandbox.stop()


async def test_nothing_else_can_be_written_by_root_either(docker, spec):
    sandbox = await docker.start(spec.model_copy(update={"user": "root"}))
    try:
        for path in ("/etc/hosts", "/etc/resolv.conf", "/etc/new", "/usr/new", "/new"):
            assert not (await sandbox.exec(f"echo x >>{path}")).ok, path
        assert (await sandbox.exec("echo x >f && cat f && mount -o remount,rw /; echo x >/new")).exit_code != 0
    finally:
        await sandbox.stop()


async def test_what_is_mounted_is_still_there(docker, spec, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "given").write_text("from outside")
    sandbox = await docker.start(spec, mounts=[Mount(tmp_path, "/opt/given")])
    try:
        assert (await sandbox.exec("cat /opt/given/given")).stdout == b"from outside"
        assert not (await sandbox.exec("echo x >/opt/given/new")).ok
    finally:
        await sandbox.stop()


async def test_another_runtime_cannot_be_entered_and_says_so(docker, spec):
    with pytest.raises(SandboxUnsupported, match=r"limits.disk_mib: only with the daemon's own runtime"):
        await docker.start(spec.model_copy(update={"options": {"runtime": "runsc"}}))


async def test_a_process_that_is_not_the_containers_is_not_entered(docker):
    from gymflow.sandboxes import SandboxUnavailable

    with pytest.raises(SandboxUnavailable, match="cannot be entered"):
        await inside.inside("f" * 64, 1, "net", lambda: None)
