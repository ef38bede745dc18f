"""Installations are whole or not there, whoever was killed while making them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gymflow.errors import InputError
from gymflow.paths import shipped
from gymflow.runtime.foreign import installing
from gymflow.runtime.foreign.installing import Npm

MAKING = f"""
import importlib.util, sys, time
from pathlib import Path
spec = importlib.util.spec_from_file_location("installing", {installing.__file__!r})  # without its package: quicker
sys.modules["installing"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
with module._making(Path(sys.argv[1]), "it", print) as building:
    if building is not None:
        (building / sys.argv[2]).touch()
    print("made" if building else "there", flush=True)
    time.sleep(float(sys.argv[3]))
"""


def making(folder: Path, name: str, seconds: float) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", MAKING, str(folder), name, str(seconds)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_killed_in_the_middle_it_is_made_again_from_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "tool-1"
    killed = making(folder, "half", 60)
    assert killed.stdout is not None
    assert [next(killed.stdout).strip() for _ in range(2)][-1] == "made"
    killed.kill()
    killed.wait()
    assert not folder.exists()
    assert "made" in making(folder, "whole", 0).communicate()[0].split()
    assert [path.name for path in folder.iterdir()] == ["whole"]


def test_one_process_makes_it_and_the_others_wait_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "tool-1"
    both = [making(folder, name, 0.2) for name in ("one", "other")]
    words = [process.communicate()[0].split()[-3:] for process in both]
    assert sorted("there" in said for said in words) == [False, True]
    assert len(list(folder.iterdir())) == 1


def test_the_installers_words_reach_the_user_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(installing.CLIS, str(tmp_path))
    monkeypatch.setattr(installing, "NODE_DISTRIBUTION", "-not-a-distribution")
    with pytest.raises(InputError, match=r"(?s)Node .* from the Python package index: exit code 2.*no such option"):
        installing.Node().install(lambda text: None)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("name", ["codex", "claude_code", "pi"])
def test_every_shipped_command_line_is_pinned_with_all_that_it_needs(name: str) -> None:
    folder = shipped("harnesses") / name
    [(package, version)] = json.loads((folder / "package.json").read_text())["dependencies"].items()
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert locked[f"node_modules/{package}"]["version"] == version
    assert all(one.get("integrity") for path, one in locked.items() if path), "every package has its hash"
    cli = Npm(folder, package, "x.js")
    assert cli.version == version and version in cli.folder.name and cli.needs_node


def test_another_pin_is_another_place(tmp_path: Path) -> None:
    for text in ("one", "two"):
        (tmp_path / text / "cli").mkdir(parents=True)
        (tmp_path / text / "cli/package.json").write_text('{"dependencies": {"p": "1"}}')
        (tmp_path / text / "cli/package-lock.json").write_text(text)
    one, two = (Npm(tmp_path / text / "cli", "p", "bin/{machine}-{cpu}") for text in ("one", "two"))
    assert one.folder != two.folder
    [program] = one.argv(Path("/opt/p"), Path("/opt/node"))
    assert program.startswith("/opt/p/bin/") and "{" not in program
