"""`gym sandbox`, as a user calls it."""

import json
import shutil
import subprocess
import sys

import pytest

from gymflow.sandboxes.local.platform import bubblewrap

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))


def gym(*arguments, **environment):
    import os

    command = [sys.executable, "-c", "from cli.main import main; main()", "sandbox", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


def test_check_says_what_works_and_exits_with_zero():
    done = gym("check", "local", "--json")
    assert done.returncode == 0, done.stderr
    assert {row["name"]: row["ok"] for row in json.loads(done.stdout)}["timeout ends the tree"] in (True, None)


def test_check_of_a_machine_that_cannot_isolate_exits_with_two(tmp_path):
    done = gym("check", "local", PATH=str(tmp_path))
    assert done.returncode == 2 and "bubblewrap is not installed" in done.stdout


def test_an_unknown_provider_is_told_with_those_that_there_are():
    done = gym("check", "nowhere")
    assert done.returncode == 2 and "known: apptainer" in done.stdout
    assert "did you mean docker?" in gym("check", "dockr").stdout


@pytest.mark.skipif(shutil.which("apptainer") is not None, reason="apptainer is installed")
def test_check_does_not_call_available_what_cannot_be_started():
    done = gym("check", "apptainer")
    assert done.returncode == 2 and "ok" not in done.stdout.split() and "apptainer is not on PATH" in done.stdout


def test_clean_counts():
    done = gym("clean", "local", "--json")
    assert done.returncode == 0 and set(json.loads(done.stdout)) == {"local"}


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")
def test_image_builds_and_a_bad_recipe_is_one_clear_line(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: tiny\nbase: busybox\n")
    done = gym("image", str(recipe), "--json", GYMFLOW_IMAGES=str(tmp_path / "images"))
    assert json.loads(done.stdout)["image"] == "tiny"
    recipe.write_text("name: tiny\nbase: windows\n")
    bad = gym("image", str(recipe))
    assert bad.returncode == 2 and "base" in bad.stderr and "Traceback" not in bad.stderr
    recipe.write_text("name: tiny\nbase: busybox\npackages: [python3]\n")
    bad = gym("image", str(recipe))
    assert bad.returncode == 2 and "packages" in bad.stderr and "busybox" in bad.stderr
    recipe.write_bytes(b"name: t\xff\n")
    bad = gym("image", str(recipe))
    assert bad.returncode == 2 and "utf-8" in bad.stderr and "Traceback" not in bad.stderr


@pytest.mark.parametrize(
    ("provider", "lacks"),
    [
        ("daytona", "no Daytona account"),
        ("ecs_fargate", "set GYMFLOW_ECS_SUBNETS"),
        ("openshell", "no OpenShell gateway"),
    ],
)
def test_a_cloud_without_its_sdk_or_account_is_one_clear_line(provider, lacks, monkeypatch):
    for name in ("DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN", "GYMFLOW_ECS_SUBNETS", "GYMFLOW_OPENSHELL_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    done = gym("check", provider)
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr
    assert "pip install 'gymflow[" in done.stdout or lacks in done.stdout
