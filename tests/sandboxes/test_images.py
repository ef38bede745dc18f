"""Images out of recipes, without a registry."""

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from gymflow.contracts.sandbox import SandboxSpec
from gymflow.sandboxes import SandboxUnavailable, images
from gymflow.sandboxes.local import LocalProvider
from gymflow.sandboxes.local.platform import bubblewrap

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(images.IMAGES, str(tmp_path / "images"))


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")
async def test_a_recipe_becomes_an_image_that_a_sandbox_starts_from():
    recipe = images.Recipe(name="test/tiny:1", base="busybox", run=["echo made > /etc/marker"])
    digest = await images.build(recipe)
    assert digest == await images.build(recipe)
    provider = LocalProvider()
    result = await provider.run(
        SandboxSpec(image="test/tiny:1"), "cat /etc/marker; echo x > /etc/marker; ls /usr/bin/awk"
    )
    assert result.stdout == b"made\n/usr/bin/awk\n" and result.stderr
    sandbox = await provider.start(SandboxSpec(image="test/tiny:1", user="root"))
    assert (await sandbox.exec("id -u; pwd")).stdout == b"0\n/work\n"
    await sandbox.stop()
    assert await provider.image_identity("test/tiny:1") == digest


def test_no_two_names_share_a_folder():
    names = ["a/b", "a_b", "a.b", "a-b", "a/b:c", "a/b_c", "a:b_c", "a:b__c", "a/b/c"]
    assert len({images._folder(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["..", "../..", "a__b", "", "/"])
async def test_what_is_no_name_of_an_image_is_none(name, tmp_path):
    (tmp_path / "rootfs").mkdir()
    (tmp_path / "images/a__b/rootfs").mkdir(parents=True)
    with pytest.raises(SandboxUnavailable):
        images.rootfs(name)


async def test_a_failed_build_leaves_nothing(tmp_path):
    with pytest.raises(SandboxUnavailable, match=r"run: exit 7 failed with exit code 7"):
        await images.build(images.Recipe(name="broken", base="busybox", run=["exit 7"]))
    assert list((tmp_path / "images").iterdir()) == []


async def test_an_image_that_was_not_built_is_said_to_be_missing():
    with pytest.raises(SandboxUnavailable, match="gym sandbox image"):
        await LocalProvider().run(SandboxSpec(image="no/such"), "true")


def test_recipes_are_checked():
    for bad in (
        {"name": "../x"},
        {"name": "x", "base": "busybox", "packages": ["jq"]},
        {"name": "x", "base": "ubuntu"},
        {"name": "x", "packages": ["--purge x"]},
    ):
        with pytest.raises(ValidationError):
            images.Recipe.model_validate(bad)


@pytest.mark.skipif(
    not shutil.which("busybox") or not shutil.which("mksquashfs"), reason="busybox or mksquashfs is missing"
)
async def test_enroot_gets_a_squashfs_file(tmp_path):
    file = await images.build(images.Recipe(name="test/tiny", base="busybox"), "enroot")
    assert file.startswith(str(tmp_path)) and Path(file).read_bytes()[:4] == b"hsqs"
    assert [path.name for path in (tmp_path / "images").iterdir()] == [Path(file).name]
