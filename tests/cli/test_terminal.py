"""What a terminal gets: neutral text, tables that fit, and a pager for what is long."""

import io
import json
import logging
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.main import _WorthSaying
from cli.tables import put_table
from cli.terminal import one_line, plain
from gymflow.errors import GateFailed
from gymflow.store import Store
from tests.cli.conftest import Terminal
from tests.conftest import Ran

COMMANDING = ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(st.text())
def test_no_text_commands_the_terminal(text: str) -> None:
    shown = plain(text)
    rest = shown.translate(dict.fromkeys(map(ord, "\n\t\u200c\u200d\u200e\u200f")))
    assert not [character for character in rest if unicodedata.category(character) in COMMANDING]
    assert plain(shown) == shown and "\n" not in one_line(text)


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "café\t日本語 👩‍🚀 עברית ∑ [bold]x[/bold]\nnext"
    assert plain(text) == text


def test_commands_are_shown_as_signs() -> None:
    assert plain("\x1b[2J\r\n\x07\x7f\x9b\u202e\ufeff") == "␛[2J\n␇␡\\x9b\\u202e\\ufeff"


def test_a_narrow_terminal_loses_no_column() -> None:
    columns, row = ("first", "second", "third"), ["a" * 20, "b" * 20, "日本" * 10]
    for width in (200, 70, 30):
        console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
        put_table(console, columns, [row])
        drawn = "".join(console.file.getvalue().split())  # type: ignore[attr-defined]
        assert all(cell in drawn for cell in (*columns, *row)), width


def test_json_and_tables_on_a_terminal_hold_no_commands(terminal: Callable[..., Terminal], store: Path) -> None:
    Store(store).layout.runs.mkdir(parents=True)
    query = "select E'\\x1b[2J\\x07' || chr(155) as text, [1] as list"
    screen = terminal("sql", query, "--json")
    assert screen.wait() == 0
    assert json.loads(screen.text) == [{"text": "\x1b[2J\x07\x9b", "list": [1]}]
    assert "\x07" not in screen.raw and "\x9b" not in screen.raw
    drawn = terminal("sql", query)
    assert drawn.wait() == 0 and "␛[2J␇\\x9b" in drawn.text and "text" in drawn.text


@pytest.mark.slow
def test_what_is_longer_than_the_screen_goes_through_the_pager(terminal: Callable[..., Terminal], store: Path) -> None:
    Store(store).layout.runs.mkdir(parents=True)
    screen = terminal("sql", "select range as n from range(5000)", rows=20, PAGER="sed s/^/paged:/")
    assert screen.wait() == 0
    assert screen.text.count("paged:") == 1002
    assert "the first 1,000 rows; --csv and --json print all" in screen.text
    missing = terminal("sql", "select range as n from range(100)", rows=20, PAGER="/no/such/pager")
    assert missing.wait() == 0 and missing.text.split()[-1] == "99"


@pytest.mark.slow
def test_a_terminal_without_unicode_and_a_reader_that_leaves_are_no_errors(
    gym: Callable[..., Ran], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(store).layout.runs.mkdir(parents=True)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ended = gym("sql", "select '日本' as text")
    assert (ended.code, ended.out, ended.err) == (0, "text\n\\u65e5\\u672c\n", "")
    command = shlex.join([sys.executable, "-m", "cli.main", "sql", "select range from range(200000)"])
    left = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True, check=True, timeout=120)
    assert (left.stdout, left.stderr) == ("range\n", "")


def test_errors_that_end_in_a_message_log_no_traceback() -> None:
    def record(error: Exception) -> logging.LogRecord:
        return logging.LogRecord("prefect", logging.ERROR, "", 0, "raised", (), (type(error), error, None))

    assert not _WorthSaying().filter(record(GateFailed("1 of 1 gates failed")))
    assert _WorthSaying().filter(record(ValueError("a fault of ours")))


def test_of_what_prefect_logs_the_page_of_the_flow_run_is_said_once() -> None:
    def said(text: str, level: int = logging.INFO) -> logging.LogRecord:
        return logging.LogRecord("prefect.flow_runs", level, "", 0, text, (), None)

    worth = _WorthSaying().filter
    lines = [
        said("View at http://a"),
        said("Finished in state Completed()"),
        said("View at http://a"),
        said("lost", 30),
    ]
    assert [worth(line) for line in lines] == [True, False, False, True]
