"""`gym eval profile`, `compare` and `aggregate`: what they print, what they leave with the run, and how they end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymflow.store import Store
from tests.support.command import Gym
from tests.support.synthetic import write_run

TAGS = [["easy"]] * 10 + [["hard"]] * 10


@pytest.fixture
def runs(store: Path) -> Store:
    """`base` passes the easy half, `better` four more tasks; two rollouts a task."""
    place = Store(store)
    base = np.repeat([1.0, 0.0], 10)
    better = np.where(np.arange(20) < 14, 1.0, 0.0)
    answers = ["A", "B"] * 20
    for number, (name, rewards) in enumerate((("base", base), ("better", better))):
        write_run(
            place, name, np.stack([rewards, rewards], axis=1), tags=TAGS, answers=answers, calls=True, cost_usd=0.01,
            created_at=float(number), varied={"model": name},
        )  # fmt: skip
    return place


def test_a_profile_is_tables_and_files(here: Gym, runs: Store) -> None:
    ended = here("eval", "profile", "base", "--by", "tag", "-k", "5", "--inline")
    assert ended.code == 0, ended.err
    for shown in ("pass@k", "pass^k", "majority@k", "tag=hard", "0.500 [", "per solved task", "wall, s"):
        assert shown in ended.out
    reports = {path.name for path in (runs.layout.run("base").reports).iterdir()}
    assert reports == {"profile-first.json", "profile-first.parquet", "profile-first-tasks.parquet"}


def test_a_profile_in_json_has_every_number_or_its_reason(here: Gym, runs: Store) -> None:
    [report] = here("eval", "profile", "base", "--json", "-k", "5", "--inline").json
    [line] = report["lines"]
    assert (line["score"]["value"], line["tasks"], line["scored"]) == (0.5, 20, 40)
    at = {one["k"]: one["estimate"] for one in line["pass_at"]}
    assert at[5]["value"] is None and "no task has 5" in at[5]["reason"]
    assert line["costs"]["cost_per_solved_usd"] == pytest.approx(0.02)


def test_several_runs_are_profiled_one_after_the_other(here: Gym, runs: Store) -> None:
    reports = here("eval", "profile", "base", "better", "--json", "--inline").json
    assert [report["run_id"] for report in reports] == ["base", "better"]


def test_plots_are_png_files(here: Gym, runs: Store) -> None:
    assert here("eval", "profile", "base", "--plots", "--json", "--inline").code == 0
    plots = sorted(runs.layout.run("base").reports.glob("*.png"))
    assert [plot.stem for plot in plots] == [
        f"profile-first-{name}" for name in ("pass-at-k", "pass-rates", "reward-tokens")
    ]
    assert all(plot.read_bytes().startswith(b"\x89PNG") for plot in plots)


def test_a_comparison_says_first_what_differs(here: Gym, runs: Store) -> None:
    ended = here("eval", "compare", "base", "better", "--by", "tag", "--inline")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("varies: model")
    for shown in ("+0.200 [", "permutation", "tag=hard", "4 gained and 0 lost"):
        assert shown in ended.out


def test_a_gate_that_fails_ends_with_4_after_the_table(here: Gym, runs: Store, tmp_path: Path) -> None:
    gates = tmp_path / "gates.yaml"
    gates.write_text("gates:\n  - absolute score >= 0.9\n")
    ended = here("eval", "compare", "base", "better", "--gate", "score >= 0.1", "--gates", str(gates), "--inline")
    assert ended.code == 4
    assert "absolute score >= 0.9" in ended.out and "FAILED" in ended.out and "holds" in ended.out
    assert "1 of 2 gates failed: absolute score >= 0.9" in ended.err
    assert here("eval", "compare", "base", "better", "--gate", "score >= 0.1", "--inline").code == 0


def test_a_failed_gate_leaves_json_alone_on_stdout(here: Gym, runs: Store) -> None:
    ended = here("eval", "compare", "base", "better", "--gate", "score < 0", "--json", "--inline")
    assert ended.code == 4
    assert [gate["passed"] for gate in json.loads(ended.out)["gates"]] == [False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["profile", "nothing"], "nothing"),
        (["profile", "base", "--by", "difficulty"], "no task of base has it"),
        (["profile", "base", "--verdicts", "zz"], "verdict set"),
        (["compare", "base", "better", "--gate", "scroe > 0"], "did you mean score"),
        (["compare", "base", "better", "--gates", "/nowhere.yaml"], "/nowhere.yaml"),
        (["compare", "base", "better:me"], "has no agent 'me'"),
        (["aggregate", "base", "better", "--into", "all"], "sampled with another model"),
        (["aggregate", "base", "--into", "better"], "was sampled itself"),
        (["aggregate", "base", "--into", "../out"], "run id"),
    ],
)
def test_a_mistake_is_one_message(here: Gym, runs: Store, arguments: list[str], message: str) -> None:
    ended = here("eval", *arguments, "--inline")
    assert ended.code == 2
    assert message in ended.err and "Traceback" not in ended.err
    assert ended.out == ""


def test_what_a_run_varies_is_compared_as_one_table(here: Gym, store: Path) -> None:
    said = [{"turn": 0, "text": "1"}]
    flags = ["eval", "run", "arithmetic", "--limit", "6", "--model", "scripted", "--inline", "--no-health"]
    ended = here(*flags, "--set", f"models.policy.parameters.rules={json.dumps(said)}", "--vary", "seed=1,2,3")
    assert ended.code == 0, ended.err
    [hint] = [line for line in ended.out.splitlines() if "eval compare" in line]
    ids = hint.split("compare")[1].split("   ")[0].split()
    assert len(ids) == 3
    compared = here("eval", "compare", *ids, "--inline").out
    table = compared.split("\n\n")[1].splitlines()
    assert [line.split()[:2] for line in table[2:]] == [["arithmetic", f"seed={seed}"] for seed in (1, 2, 3)]
    assert "seed 1 → 3" in compared


def test_the_agents_of_a_run_are_compared_as_one_table(here: Gym, store: Path, tmp_path: Path) -> None:
    models = {
        name: {"provider": "scripted", "model": name, "parameters": {"rules": [{"text": name}]}} for name in ("7", "8")
    }
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps({"environments": [{"name": "arithmetic", "limit": 6}], "models": models}))
    ended = here("eval", "run", "--config", str(config), "--inline", "--no-health")
    assert f"eval compare {here('runs', '--json').json[0]['run_id']}" in ended.out
    compared = here("eval", "compare", "latest", "--inline")
    assert compared.code == 0, compared.err
    assert compared.out.startswith("varies: model (")
    report = here("eval", "compare", "latest", "--json", "--inline").json
    assert [line["agent"] for line in report["candidates"]] != [report["base_agent"]]
    assert f"{report['base_agent']} (base)" in compared.out and report["candidates"][0]["agent"] in compared.out


def test_shards_become_one_run(here: Gym, store: Path) -> None:
    flags: list[Any] = ["eval", "run", "arithmetic", "--limit", 5, "--repeats", 2, "--inline", "--json"]
    for shard in ("0/2", "1/2"):
        assert here(*flags, "--shard", shard).code == 0
    ids = [run["run_id"] for run in here("runs", "--json").json]
    part = here("eval", "aggregate", ids[0], "--into", "part", "--inline")
    assert part.code == 3 and "shards 0/2 are not among the runs" in part.err
    whole = here("eval", "aggregate", *ids, "--into", "whole", "--json", "--inline")
    assert whole.code == 0, whole.err
    assert whole.json["merge"]["completed"] == 10 and whole.json["scorecard"]["lines"][0]["scored"] == 10
    once = here(*flags).json
    assert whole.json["scorecard"]["lines"][0]["score"] == once[0]["lines"][0]["score"]


def test_shards_that_grow_by_the_same_repeats_stay_apart(here: Gym, store: Path) -> None:
    flags: list[Any] = ["eval", "run", "arithmetic", "--limit", 5, "--inline", "--json"]
    for shard in ("0/2", "1/2"):
        assert here(*flags, "--shard", shard).code == 0
    ids = [run["run_id"] for run in here("runs", "--json").json]
    for run_id in ids:
        assert here("eval", "run", "--resume", run_id, "--repeats", 3, "--inline", "--json").code == 0
    whole = here("eval", "aggregate", *ids, "--into", "whole", "--json", "--inline").json["merge"]
    assert (whole["planned"], whole["completed"], whole["equal"], whole["conflicts"]) == (15, 15, 0, [])
