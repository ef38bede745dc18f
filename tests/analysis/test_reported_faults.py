"""Faults that were reported elsewhere, as far as health, diagnosis, reports and decisions could have them."""

import asyncio
from typing import Any

import pytest

from cli.abreast import show_pair
from cli.attention import put_attention
from cli.decide import decide_run
from cli.terminal import results
from gymflow.analysis.diagnose import diagnose, last_diagnosis
from gymflow.analysis.health import examine
from gymflow.analysis.page import write_page
from gymflow.errors import InputError
from gymflow.metrics.scorecard import scorecard
from gymflow.store import connect
from gymflow.store.decisions import find_decision
from tests.support.cases import fault

from .conftest import Planter, Said, Sample, answering, tool


def saying(text: str, planter: Planter, task: int = 0) -> list[Sample]:
    """A passing and a failing repeat that both say it, in words and to a tool."""
    turn = Said(text, tools=[tool(arguments=text, output=text)])
    return [
        Sample([turn, Said(f"{text} The answer is ({letter}).")])
        for letter in (planter.gold(task), planter.wrong(task))
    ]


def test_half_a_surrogate_pair_stops_no_report(planter: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    """io-lone-surrogate."""
    text = "abc \ud835 def"
    assert fault("io-lone-surrogate")["response_python"] == ascii(text)
    planter.run("r", [saying(text, planter), [answering(planter.gold(1))] * 2])
    assert examine(planter.store, "r").rollouts == 4
    found = asyncio.run(diagnose(planter.store, "r"))
    assert (found.passed, found.labelled, found.dropped_citations) == (3, 1, 0)
    assert asyncio.run(write_page(planter.store, "r")).read_text()
    show_pair(planter.store.run("r"), (0, 1), "first", range(0, 2), json=False)
    assert "\ud835" not in capsys.readouterr().out
    show_pair(planter.store.run("r"), (0, 1), "first", None, json=True)


def test_what_ends_a_run_holds_no_word_of_an_agent(planter: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    """se-monitor-injection: the lines below a scorecard are read by programs and models, too."""
    message = fault("se-monitor-injection")["message"]
    agreed = [Sample([Said(f"{message} The answer is ({planter.wrong(0)}).")]) for _ in range(4)]
    spoken = lambda verdict: verdict.model_copy(  # noqa: E731
        update={"verdict": verdict.verdict.model_copy(update={"extracted_answer": message, "reason": message})}
    )
    for sample in agreed:
        sample.verdict = spoken
    solved = [[answering(planter.gold(task))] * 4 for task in range(1, 6)]
    planter.run("r", [agreed, *solved, saying(message, planter, task=6)])
    examine(planter.store, "r")
    found = asyncio.run(diagnose(planter.store, "r"))
    assert found.suspects and found.divergences and len(found.look_first) > 2
    put_attention(results(), scorecard(planter.store, "r"), health=True, diagnosis=True)
    out = capsys.readouterr().out
    assert "look first" in out and "q0" in out and message not in out


def test_escape_sequences_reach_no_terminal(planter: Planter, capsys: pytest.CaptureFixture[str]) -> None:
    """se-terminal-escape."""
    text = "\x1b[2J\x1b[1;1H reward=1.0 \x1b]0;pwn\x07"
    assert fault("se-terminal-escape")["text_python"] == repr(text)
    planter.run("r", [saying(text, planter)])
    show_pair(planter.store.run("r"), (0, 1), "first", range(0, 2), json=False)
    options: dict[str, Any] = {"store": str(planter.store.root), "inline": True, "json": False}
    decide_run("r", choose="1", decided_by=text, reason=text, **options)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out and "␛[2J" in out
    with connect(planter.store.root) as connection:
        assert connection.execute("select decided_by from decisions").fetchone() == (text.strip(),)


def test_names_that_are_sql_are_names(planter: Planter) -> None:
    """se-sql-injection."""
    hostile = fault("se-sql-injection")["filter"]
    planter.run("r", [saying(hostile, planter)])
    assert asyncio.run(diagnose(planter.store, "r")) == last_diagnosis(planter.store.run("r"))
    with pytest.raises(InputError, match="no decision"):
        find_decision(planter.store, hostile)
    with connect(planter.store.root) as connection:
        assert connection.execute("select count(*) from rollouts").fetchone() == (2,)
