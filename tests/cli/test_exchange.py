"""Import, reverify and export from the command line."""

import json
from pathlib import Path

from tests.support.command import Gym

PEERS = Path(__file__).parents[1] / "cases" / "peer_rollouts"


def test_published_rollouts_are_imported_reverified_and_exported(here: Gym, tmp_path: Path) -> None:
    imported = here(
        *("eval", "import", str(PEERS / "mcqa.jsonl"), "--format", "nemo-gym", "--verifier", "mcqa", "--run-id", "peer")
    )
    assert imported.code == 0, imported.err
    assert "2 rollouts of 2 tasks" in imported.out and "2 with gap no_model_calls" in imported.out
    reverified = here("eval", "reverify", "peer", "--set", "verifier.mode=lenient", "--json")
    assert reverified.code == 0, reverified.err
    report = reverified.json
    assert report["lines"][0]["rollouts"] == 2 and report["changes"][0]["verifier"] == ["nemo-gym", "mcqa"]
    shown = here("eval", "reverify", "peer", "--set", "verifier.mode=lenient")
    assert "the verifier is unchanged, all 2 verdicts were reused" in shown.out
    resumed = here("eval", "run", "--resume", "peer", "--inline")
    assert resumed.code == 2 and "the run was imported" in resumed.err
    output = tmp_path / "out.jsonl"
    exported = here("eval", "export", "peer", "--format", "nemo-gym", "--output", str(output), "--json")
    assert exported.json["rollouts"] == 2 and exported.json["files"][0] == str(output)
    rewards = [json.loads(line)["reward"] for line in output.read_text().splitlines()]
    assert rewards == [
        json.loads(line)["rollout"]["reward"] for line in (PEERS / "mcqa.jsonl").read_text().splitlines()
    ]


def test_what_cannot_be_done_is_said_in_one_line(here: Gym, tmp_path: Path) -> None:
    wrong = here("eval", "import", str(PEERS / "mcqa.jsonl"), "--format", "nemo-gim")
    assert wrong.code == 2 and "nemo-gym" in wrong.err
    missing = here("eval", "import", str(tmp_path / "nothing.jsonl"), "--format", "atif")
    assert missing.code == 2 and "there is no file" in missing.err
    other = here("eval", "import", str(PEERS / "mcqa.jsonl"), "--format", "nemo-gym", "--set", "budgets.max_turns=1")
    assert other.code == 2 and "verifier.PARAM" in other.err
