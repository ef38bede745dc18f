"""What reaches the terminal: text that cannot command it, JSON, and a pager for what is longer than the screen."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from gymflow.legible import RISKY, legible
from gymflow.store.encoding import dumps_plain

PIPE_WIDTH = 160
"""Width of tables where there is no terminal; a pipe has none of its own."""

plain = legible
"""Text as it may be printed on a terminal."""


def one_line(text: str) -> str:
    """The same on one line."""
    return plain(" ".join(text.split()))


def json_text(value: Any) -> str:
    """JSON on one line. On a terminal what could command it is escaped, which leaves the value the same."""
    text = dumps_plain(value).decode()
    return RISKY.sub(lambda match: json.dumps(match.group())[1:-1], text) if sys.stdout.isatty() else text


def print_json(value: Any) -> None:
    """JSON on stdout."""
    print(json_text(value))


def print_json_list(values: Iterable[Any]) -> None:
    """A JSON list on stdout, one element a line, written as it comes."""
    before = "["
    for value in values:
        print(before, json_text(value), sep="", end="")
        before = ",\n"
    print("[]" if before == "[" else "]")


def results() -> Console:
    """A console on stdout that prints text as it is, without markup."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


@contextlib.contextmanager
def paged(*, chop: bool = False) -> Iterator[Console]:
    """The same, through the user's pager if what is printed within the block does not fit the terminal. With `chop` the pager
    (less) shows long lines by their beginning and scrolls sideways."""
    console = results()
    if not console.is_terminal:
        yield console
        return
    with console.capture() as capture:
        yield console
    text = capture.get()
    if not (_longer(text, console) and _page(text, "FRXS" if chop else "FRX")):
        sys.stdout.write(text)


def _longer(text: str, console: Console) -> bool:
    width, height = console.size
    used = 0
    for line in text.splitlines():
        used += max(1, -(-cell_len(line) // width))
        if used >= height:
            return True
    return False


def _page(text: str, less: str) -> bool:
    """False where the pager cannot be started."""
    command = shlex.split(os.environ.get("PAGER") or "less")
    environment = os.environ | {"LESS": os.environ.get("LESS", less), "LESSCHARSET": "utf-8"}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's while it is there
    try:
        pager.communicate(text.encode(errors="replace"))
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, before)
    return True


def command() -> str:
    """`gym` as it has to be typed here: its path where the shell would not find it."""
    if shutil.which("gym") or Path(sys.argv[0]).name != "gym":
        return "gym"
    return os.path.relpath(sys.argv[0])
