"""Report tables as markdown for the Prefect UI."""

import pytest

from gymflow.analysis.sheets import Sheet
from tasks.artifacts import markdown, publish, slug


def test_a_sheet_is_a_table_of_github_markdown() -> None:
    text = markdown([Sheet("scores", ("agent", "score"), [("simple", "0.5"), ("other", "1.0")])], lead="two agents")
    assert text == ("two agents\n\n### scores\n\n| agent | score |\n|---|---:|\n| simple | 0.5 |\n| other | 1.0 |\n")


def test_every_line_of_the_lead_is_a_paragraph_of_its_own() -> None:
    assert markdown([], lead="one varies: model\ntwo varies: prompt") == "one varies: model\n\ntwo varies: prompt\n"


def test_no_code_closes_the_fence_around_its_difference() -> None:
    text = markdown([], diffs={"a_b: the verifier's code": "-x\n+````\n"})
    assert text == "### a\\_b: the verifier's code\n\n`````diff\n-x\n+````\n`````\n"
    assert "```diff\n-x\n```" in markdown([], diffs={"code": "-x"})


@pytest.mark.parametrize(
    "name", ["a|b", "<script>alert(1)</script>", "![x](http://example.invalid)", "two\nlines", "`code`"]
)
def test_names_are_shown_as_they_are_and_break_no_table(name: str) -> None:
    rows = markdown([Sheet("t", ("name",), [(name,)])]).splitlines()[-1]
    assert rows.startswith("| ") and rows.endswith(" |")
    inner = rows[2:-2]
    for sign in "|<>![]`":
        assert inner.count(sign) == inner.count("\\" + sign)


@pytest.mark.parametrize(
    ("text", "key"), [("scorecard-mcqa temperature=0.5", "scorecard-mcqa-temperature-0-5"), ("Ä ", "report")]
)
def test_keys_have_what_prefect_allows(text: str, key: str) -> None:
    assert slug(text) == key


async def test_nothing_is_published_outside_of_a_flow_run() -> None:
    await publish("key", [Sheet("t", ("name",), [])])


def test_columns_of_words_stand_on_the_left_and_numbers_on_the_right() -> None:
    columns = ("cause", "rollouts", "score", "such as", "drop", "gain", "nothing")
    rows = [
        ("looped", "12", "0.604 ± 0.056 [0.489, 0.709]", "r-1 calls/0 = 5", "95 not passed", "-", ""),
        ("gave up", "1,200", "0.5", "488 stands there", "none", "+0.05", ""),
    ]
    rule = markdown([Sheet("causes", columns, rows)]).splitlines()[3]
    assert rule == "|---|---:|---:|---|---|---:|---|"
    assert Sheet("empty", columns, []).numbers == [False] * 7
