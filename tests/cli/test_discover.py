"""`gym list` and `gym search`."""

from pathlib import Path

import pytest

from tests.support.command import Gym
from tests.support.environments import write_environment

KINDS = ["environments", "benchmarks", "harnesses", "verifiers", "models", "sandboxes"]


@pytest.fixture
def gym(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gym:
    return Gym(monkeypatch, capsys)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A user root with an environment, a broken verifier, and a harness that needs a shell."""
    write_environment(
        tmp_path / "environments" / "astronomy",
        domain="physics",
        tags=["stars", "hard"],
        licence="CC-BY-4.0",
        external_licence="GPL-3.0",
    )
    (tmp_path / "verifiers").mkdir()
    (tmp_path / "verifiers" / "torn.py").write_text("import nothing_like_this\n")
    (tmp_path / "harnesses").mkdir()
    (tmp_path / "harnesses" / "digger.py").write_text(
        '"""Digs."""\nfrom gymflow.harnesses import Harness\n\n\nclass Digger(Harness):\n    needs = frozenset({"shell"})\n'
    )
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_listed_as_lines_and_as_json(gym: Gym, kind: str) -> None:
    plain, json = gym("list", kind), gym("list", kind, "--json")
    assert (plain.code, json.code, plain.err, json.err) == (0, 0, "", "")
    names = [line.split("\t")[0] for line in plain.out.splitlines()]
    assert names == [one["name"] for one in json.json] and names
    assert all(one["description"] or one["broken"] or kind == "sandboxes" for one in json.json)


def test_the_shipped_components_are_all_sound(gym: Gym) -> None:
    for kind in KINDS:
        assert [one["broken"] for one in gym("list", kind, "--json").json if one["broken"]] == []


def test_one_component_is_shown_in_detail_with_how_to_use_it(gym: Gym) -> None:
    shown = gym("list", "environments", "mcqa")
    assert "gym eval run mcqa" in shown.out and "mcqa-4x" in shown.out
    verifier = gym("list", "verifiers", "mcqa", "--json").json
    assert "expected_answer" in verifier["details"]["task_fields"] and verifier["usage"] == "verifier: {name: mcqa}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "enviroments"], "did you mean environments?"),
        (["list", "environments", "mcqq"], "did you mean mcqa?"),
        (["list", "harnesses", "--for", "mcqq"], "did you mean mcqa?"),
        (["list", "verifiers", "--for", "mcqa"], "--for goes with"),
        (["list", "environments", "--search-dir", "/nowhere/at/all"], "no such folder"),
    ],
)
def test_a_mistake_ends_with_2_and_one_message_on_stderr(gym: Gym, arguments: list[str], message: str) -> None:
    ended = gym(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err


def test_harnesses_are_judged_for_an_environment(gym: Gym, root: Path) -> None:
    listed = gym("list", "harnesses", "--for", "mcqa", "--search-dir", root, "--json").json
    fits = {one["name"]: (one["details"]["fits"], one["details"]["reason"]) for one in listed}
    assert fits["single_turn"] == (True, None)
    assert fits["digger"] == (False, "it needs shell, and the environment offers only messages")
    assert listed[-1]["details"]["fits"] is False


def test_a_broken_component_is_listed_with_its_reason(gym: Gym, root: Path) -> None:
    [torn] = [
        line for line in gym("list", "verifiers", "--search-dir", root).out.splitlines() if line.startswith("torn")
    ]
    assert "broken: verifier 'torn'" in torn and "nothing_like_this" in torn


@pytest.mark.parametrize(
    "filters",
    [
        ["--domain", "Physics"],
        ["--tag", "stars", "--tag", "hard"],
        ["--licence", "CC-BY-4.0"],
        ["--licence", "gpl-3.0"],
    ],
)
def test_filters_by_domain_tag_and_either_licence(gym: Gym, root: Path, filters: list[str]) -> None:
    listed = gym("list", "environments", "--search-dir", root, "--json", *filters)
    assert [one["name"] for one in listed.json] == ["astronomy"]


def test_what_a_filter_cannot_judge_is_counted_on_stderr(gym: Gym) -> None:
    listed = gym("list", "verifiers", "--domain", "math", "--json")
    assert listed.json == [] and "left out that have no domain" in listed.err


@pytest.mark.parametrize(
    ("query", "first"),
    [
        (["multiple-choice"], "mcqa"),
        (["environments", "office"], "workplace"),
        (["harness", "tool", "loop"], "simple"),
        (["arithmetik"], "arithmetic"),
        (["benchmarks", "4x"], "mcqa-4x"),
    ],
)
def test_search_finds_by_substring_and_else_by_similarity(gym: Gym, query: list[str], first: str) -> None:
    found = gym("search", *query, "--json").json
    assert found and first in [one["name"] for one in found[:3]]


def test_a_substring_hit_hides_what_is_only_similar(gym: Gym, root: Path) -> None:
    found = gym("search", "environments", "astronomy", "--search-dir", root, "--json").json
    assert [one["name"] for one in found] == ["astronomy"]


def test_a_search_without_result_says_so_and_is_no_error(gym: Gym) -> None:
    found = gym("search", "zzzzqqqq", "--json")
    assert (found.code, found.json) == (0, []) and "nothing matches 'zzzzqqqq'" in found.err
