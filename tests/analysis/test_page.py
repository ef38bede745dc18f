"""The page of a run: complete, in one file, and whatever stands in a trajectory stays text."""

import asyncio
import base64
import json
import re
import shutil
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.report import report_run
from gymflow.analysis.page import trajectories, write_page, writing
from gymflow.analysis.page.markup import Markup, element, escaped, joined
from gymflow.contracts.outcome import FailureKind, StopReason
from gymflow.store import connect

from .conftest import Planter, Said, Sample, answering, tool

HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2">\x00\x1b[2J‮شر <b>'


class Read(HTMLParser):
    """What a browser would make of a page: its elements, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts.append(data)
        elif self._in != "style":
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def having(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag and wanted.items() <= found.items()]


def planted(planter: Planter) -> str:
    hostile = Sample([Said(HOSTILE, tools=[tool(arguments=f'{{"q": "{HOSTILE}"}}', output=HOSTILE)]), Said(HOSTILE)])
    long = Sample([Said("word " * 30_000)], stop=StopReason.MAX_OUTPUT_TOKENS)
    tasks = [[answering(planter.gold(0)), hostile], [Sample(failed=FailureKind.MODEL_ERROR), Sample(missing=True)]]
    return planter.run("r", [*tasks, [long, answering(planter.wrong(2))]], name=f"run {HOSTILE}")


@pytest.fixture
def page(planter: Planter) -> tuple[Planter, str]:
    planted(planter)
    return planter, asyncio.run(write_page(planter.store, "r")).read_text()


def stories(found: Read) -> list[dict[str, Any]]:
    return [json.loads(zlib.decompress(base64.b64decode(one))) for one in found.scripts[:-1]]


def test_nothing_that_a_model_wrote_is_markup_and_all_of_it_is_there(page: tuple[Planter, str]) -> None:
    text = page[1]
    found = Read(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert {name for name, _ in found.elements}.isdisjoint({"img", "iframe", "link", "object", "base"})
    assert not any(key.startswith("on") for _, attributes in found.elements for key in attributes)
    # One script of its own, allowed by its digest, and a data block for each rollout that is stored.
    assert len(found.having("script")) == 5 + 1 and len(found.having("script", type="text/plain")) == 5
    [policy] = found.having("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "default-src 'none'" in str(policy["content"]) and writing._hash(found.scripts[-1]) in str(policy["content"])
    [hostile] = [one for one in stories(found) if any(HOSTILE[:20] in str(section) for section in one["sections"])]
    blocks = [tuple(one) for section in hostile["sections"] for one in section["blocks"]]
    assert ("output", "gets", "</script><script>window.hacked=1</script>" + blocks[-1][2][41:]) in blocks
    assert all("␀" in one[2] and "\\u202e" in one[2] for one in blocks if one[0] in ("said", "output", "tool"))
    assert "http://" not in text and "https://" not in text and "//" not in str(found.having("a"))


def test_every_rollout_has_its_place_and_every_link_leads_to_one(page: tuple[Planter, str]) -> None:
    planter, text = page
    found = Read(text)
    ids = {attributes["id"] for _, attributes in found.elements if attributes.get("id")}
    assert {f"r-{index}" for index in range(6)} <= ids
    kinds = {attributes["id"]: attributes["data-kind"] for attributes in found.having("details")}
    expected = ["passed", "not-passed", "failed", "missing", "not-passed", "not-passed"]
    assert kinds == {f"r-{index}": kind for index, kind in enumerate(expected)}
    for link in found.having("a"):
        target = str(link["href"]).removeprefix("#").split("/turn-")[0]
        assert target in ids, target
    cells = [one for one in found.having("a") if str(one.get("class", "")).startswith("cell")]
    assert sorted(str(one["href"]) for one in cells) == [f"#r-{index}" for index in range(6)]
    with connect(planter.store.root) as connection:
        for check, rollout_id in connection.execute('select "check", rollout_id from findings').fetchall():
            assert check in found.text, (check, rollout_id)


def test_marks_stand_at_their_turns_and_long_texts_say_what_was_cut(page: tuple[Planter, str]) -> None:
    found = stories(Read(page[1]))
    marks = [mark for one in found for mark in [*one["marks"], *(m for s in one["sections"] for m in s["marks"])]]
    assert {"behaviour: looped_text", "knowledge_gap: never_right", "failed_rollout"} <= {name for _, name, _ in marks}
    texts = [block[2] for one in found for section in one["sections"] for block in section["blocks"]]
    assert any(text.endswith("more characters; gym show prints them") for text in texts)
    assert max(map(len, texts)) < trajectories.LONGEST + 100


def test_a_large_run_shows_those_that_did_not_pass_first(planter: Planter, monkeypatch: pytest.MonkeyPatch) -> None:
    planter.run("r", [[answering(planter.gold(task)), answering(planter.wrong(task))] for task in range(4)])
    monkeypatch.setattr(writing, "MOST", 5)
    found = Read(asyncio.run(write_page(planter.store, "r")).read_text())
    kinds = sorted(str(one["data-kind"]) for one in found.having("details"))
    assert kinds == ["not-passed"] * 4 + ["passed"] and "5 of 8 rollouts" in found.text


def test_the_command_writes_where_it_is_told(
    planter: Planter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planter.run("r", [[Sample(missing=True)]])
    options: dict[str, Any] = {"store": str(planter.store.root), "inline": True}
    report_run("r", output=tmp_path / "deep" / "page.html", json=True, **options)
    said = json.loads(capsys.readouterr().out)
    assert Path(said["path"]) == tmp_path / "deep" / "page.html"
    assert Path(said["path"]).stat().st_size == said["bytes"]
    report_run("r", output=None, json=False, **options)
    assert "reports/report.html" in capsys.readouterr().out
    assert not list((planter.store.layout.run("r").reports).glob("*.tmp"))


@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_text_is_text_in_content_and_attributes(text: str) -> None:
    made = element("p", text, title=text)
    made.encode()
    found = Read(made)
    [(name, attributes)] = found.elements
    assert (name, list(attributes)) == ("p", ["title"]) and found.scripts == []
    assert not re.search(r"[<\x00]", str(escaped(text)))


def test_markup_is_not_escaped_twice_and_children_nest() -> None:
    inner = element("b", "a & b")
    assert joined("x < ", [inner, None, ["y"]]) == "x &lt; <b>a &amp; b</b>y"
    assert element("input", hidden=True, value="", x=None) == '<input hidden value=""/>'
    assert isinstance(joined(), Markup)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_opens_the_linked_turn_and_runs_nothing_of_the_model(
    page: tuple[Planter, str], tmp_path: Path
) -> None:
    file = page[0].store.layout.run("r").reports / "report.html"
    options = ["--headless", "--no-sandbox", "--virtual-time-budget=5000", f"--user-data-dir={tmp_path}", "--dump-dom"]
    done = subprocess.run(
        ["chromium", *options, f"{file.as_uri()}#r-1/turn-0"], capture_output=True, text=True, timeout=120, check=True
    )
    found = Read(done.stdout)
    assert found.having("section", id="r-1/turn-0") and found.having("details", id="r-1", open="")
    assert not found.having("img") and "window.hacked=1" in found.text
    assert not found.having("section", id="r-0/turn-0"), "a trajectory was unpacked that nobody opened"


def test_pass_at_k_says_over_how_many_tasks_it_is(planter: Planter) -> None:
    even = [[answering(planter.gold(task)), answering(planter.wrong(task))] for task in range(3)]
    planter.run("even", even)
    text = Read(asyncio.run(write_page(planter.store, "even")).read_text()).text
    assert "pass@21.000 over 3 tasks with at least 2 scored repeats" in text
    assert "over the tasks with at least k scored repeats: 3" in text and "pass@1" not in text
    uneven = [*even[:2], [answering(planter.gold(2)), Sample(failed=FailureKind.MODEL_ERROR)]]
    planter.run("uneven", uneven)
    text = Read(asyncio.run(write_page(planter.store, "uneven")).read_text()).text
    assert "pass@10.667 over 3 tasks with at least 1 scored repeat" in text
    assert "pass@21.000 over 2 tasks with at least 2 scored repeats" in text
    assert "over the tasks with at least k scored repeats: 3 at k = 1, 2 at k = 2" in text


def test_a_finding_about_a_task_names_it(planter: Planter) -> None:
    planter.run("r", [[Sample(failed=FailureKind.MODEL_ERROR)] * 2])
    text = Read(asyncio.run(write_page(planter.store, "r")).read_text()).text
    assert "task/q0 all 2 repeats by policy failed: model_error" in text
