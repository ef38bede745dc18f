"""What reaches the terminal: text that cannot command it, JSON, and a pager for what is longer than the screen."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from gymflow.store.encoding import dumps_plain

PIPE_WIDTH = 160
"""Width of tables where there is no terminal; a pipe has none of its own."""

_HARMLESS = "\n\t\u200c\u200d\u200e\u200f"
"""Line breaks, tabs, and the joiners and marks that scripts and emoji are written with."""
_RISKY = re.compile(r"[^ -~\u00a1-\u00ac\u00ae-\u05ff]")
"""Characters that may be risky; the others are not looked up."""


def plain(text: str) -> str:
    """Text that a model, a dataset or an endpoint wrote, as it may be printed: what would move the cursor, ring, change colours or
    the direction of writing is shown as a sign or an escape instead."""
    return _RISKY.sub(_shown, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on one line."""
    return plain(" ".join(text.split()))


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _HARMLESS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def json_text(value: Any) -> str:
    """JSON on one line. On a terminal what could command it is escaped, which leaves the value the same."""
    text = dumps_plain(value).decode()
    return _RISKY.sub(lambda match: json.dumps(match.group())[1:-1], text) if sys.stdout.isatty() else text


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
