"""`gym env init|validate|resolve`."""

from pathlib import Path

import pytest
import yaml

from tests.support.command import Gym
from tests.support.environments import write_environment


@pytest.fixture
def gym(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Gym:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Gym(monkeypatch, capsys)


@pytest.mark.parametrize("template", ["single_turn", "tools", "conversation"])
def test_a_new_environment_validates_and_runs_as_it_stands(gym: Gym, tmp_path: Path, template: str) -> None:
    made = gym("env", "init", "mine", "--dir", tmp_path / "new", "--template", template)
    folder = Path(made.out.strip())
    assert (made.code, folder) == (0, tmp_path / "new" / "mine")
    report = gym("env", "validate", folder, "--json")
    assert (report.code, report.json["ok"], report.json["warnings"]) == (0, True, [])
    assert len({fixture["kind"] for fixture in report.json["fixtures"]}) == 6
    written = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert "ENVIRONMENT_NAME" not in "".join(path.read_text() for path in written)
    ran = gym(
        "eval",
        "run",
        folder,
        "--limit",
        2,
        "--max-output-tokens",
        3,
        "--store",
        tmp_path / "store",
        "--inline",
        "--json",
    )
    assert ran.code == 0, ran.err
    [card] = ran.json
    [line] = card["lines"]
    assert (line["environment"], line["scored"]) == ("mine", line["rollouts"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Bad-Name"], "cannot name an environment"),
        (["mine", "--template", "tool"], "did you mean tools?"),
        (["taken"], "exists already"),
    ],
)
def test_init_refuses_what_it_cannot_make(gym: Gym, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "taken").mkdir()
    ended = gym("env", "init", *arguments, "--dir", tmp_path)
    assert (ended.code, ended.out) == (2, "") and message in ended.err
    assert list((tmp_path / "taken").iterdir()) == []


def test_validate_ends_with_2_where_a_run_would_not_start(gym: Gym, tmp_path: Path) -> None:
    folder = write_environment(tmp_path / "env", rows="{\n", licence="None")
    plain, json = gym("env", "validate", folder), gym("env", "validate", folder, "--json")
    assert plain.code == json.code == 2
    assert f"fault: {folder}/test.jsonl:1: not JSON" in plain.out and "a run would not start" in plain.out
    assert json.json["ok"] is False and json.json["splits"][0]["faults"][0]["line"] == 1


def test_validate_with_a_harness_refuses_an_impossible_pair(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "harnesses").mkdir()
    (tmp_path / "harnesses" / "digger.py").write_text(
        '"""Digs."""\nfrom gymflow.harnesses import Harness\n\n\nclass Digger(Harness):\n    needs = frozenset({"shell"})\n'
    )
    ended = gym("env", "validate", "mcqa", "--harness", "digger", "--search-dir", tmp_path)
    assert ended.code == 2 and "harness digger cannot play mcqa: it needs shell" in ended.out


@pytest.mark.parametrize("command", ["validate", "resolve"])
def test_an_unknown_environment_is_one_message(gym: Gym, command: str) -> None:
    ended = gym("env", command, "mcqq")
    assert (ended.code, ended.out) == (2, "") and "did you mean mcqa?" in ended.err


def test_resolve_prints_all_layers_merged(gym: Gym) -> None:
    ended = gym(
        "env", "resolve", "mcqa", "--benchmark", "mcqa-4x", "--set", "sampling.temperature=0", "--set", "harness=simple"
    )
    resolved = yaml.safe_load(ended.out)
    assert ended.code == 0
    assert (resolved["repeats"], resolved["split"]) == (4, "test")
    assert resolved["sampling"]["policy"] == {"temperature": 0.0, "max_output_tokens": 512}
    assert resolved["environment"]["harness"] == {
        "name": "simple",
        "parameters": {"max_turns": None, "max_malformed": 5, "command_timeout_s": 120.0, "output_characters": 16_000},
    }
    assert gym("env", "resolve", "mcqa", "--json").json["repeats"] == 1


def test_resolve_masks_secrets_and_keeps_references(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PASSWORD", "correct-horse-battery")
    ended = gym(
        "env", "resolve", "mcqa",
        "--set", "models.policy.api_key=${env:MODEL_KEY}",
        "--set", "models.policy.parameters.password=hunter2hunter2",
    )  # fmt: skip
    assert "${env:MODEL_KEY}" in ended.out
    assert "hunter2" not in ended.out and "correct-horse" not in ended.out


def test_ds_limit_zero(gym: Gym, tmp_path: Path) -> None:
    """Nothing selected means that nothing is run, and the exit says so."""
    rows = [{"task_id": str(n), "question": "?", "answer": "x"} for n in range(5)]
    fixtures = [
        {"kind": kind, "task_id": "0", "text": "x" if kind in ("full", "format_variant") else "", "reward": float(kind in ("full", "format_variant"))}
        for kind in ("full", "none", "near_miss", "format_variant", "malformed", "empty")
    ]  # fmt: skip
    folder = write_environment(tmp_path / "env", rows=rows, fixtures=fixtures)
    ended = gym("eval", "run", folder, "--limit", 0, "--store", tmp_path / "store", "--inline")
    assert ended.code == 2 and "nothing is selected" in ended.err
    assert list((tmp_path / "store").glob("runs/*/plan.parquet")) == []
